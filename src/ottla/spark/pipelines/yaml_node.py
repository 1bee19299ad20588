"""One mapping of a pipeline file, with typed access to its values.

Owns: the wording of errors: where (`sinks[2].topic.name`), the value there, what was expected.
Never: knows what a pipeline is made of.

A caller that has read all keys calls `done`: any key it has not read is unknown and rejected, with
the nearest known key as a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from ottla.model.errors import UserError


class Node:
    """A mapping of the file, and its path."""

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, Mapping):
            raise UserError(f"{path or 'the file'}: expected a mapping, got {_describe(value)}")
        for name in value:
            if not isinstance(name, str):
                raise UserError(f"{path or 'the file'}: the key {name!r} is not text; quote it")
        self.path = path
        self._values: Mapping[str, Any] = value
        self._read: dict[str, None] = {}

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def fail(self, name: str, message: str) -> NoReturn:
        raise UserError(f"{self.at(name)}: {message}")

    def check(self, name: str, read: Callable[[], object]) -> None:
        """Run a check; a UserError of it gets this path in front."""
        try:
            read()
        except UserError as mistake:
            self.fail(name, str(mistake))

    def has(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str | None = None) -> str:
        """Text, or a number written without quotes; required unless there is a default."""
        value = self._value(name)
        if value is None:
            if default is None:
                self.fail(name, "missing")
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(name, f"expected text, got {_describe(value)}")
        return str(value)

    def maybe(self, name: str) -> str | None:
        return None if self._value(name) is None else self.text(name)

    def choice(self, name: str, among: Sequence[str], default: str | None = None) -> str:
        value = self.text(name, default)
        if value not in among:
            self.fail(name, f"{value!r}: expected one of {', '.join(among)}")
        return value

    def number(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        value = self._value(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(name, f"expected a whole number, at least {least}, got {_describe(value)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text alone; empty if absent."""
        value = self._value(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(name, f"expected text or a list of texts, got {_describe(value)}")
        return tuple(value)

    def table(self, name: str) -> dict[str, str]:
        """A mapping of texts, such as options; empty if absent."""
        value = self._value(name)
        if value is None:
            return {}
        inner = Node(value, self.at(name))
        return {key: inner._plain(key) for key in value}

    def node(self, name: str) -> Node:
        if self._value(name) is None:
            self.fail(name, "missing")
        return Node(self._values[name], self.at(name))

    def named(self, name: str) -> Iterator[tuple[str, Node]]:
        """The mappings below a key, each with its name; empty if absent."""
        value = self._value(name)
        if value is None:
            return
        inner = Node(value, self.at(name))
        for key in value:
            yield key, Node(value[key], inner.at(key))

    def items(self, name: str) -> list[Node]:
        value = self._value(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(name, f"expected a list, got {_describe(value)}")
        return [Node(item, f"{self.at(name)}[{index}]") for index, item in enumerate(value)]

    def names(self) -> tuple[str, ...]:
        """The keys that are there."""
        return tuple(self._values)

    def raw(self, name: str) -> Any:
        """The value, of any type."""
        return self._value(name)

    def one_of(self, kinds: Sequence[str]) -> str:
        """The only one of these keys that is present."""
        present = [kind for kind in kinds if kind in self._values]
        for kind in kinds:
            self._read[kind] = None
        if len(present) != 1:
            given = " and ".join(present) if present else "none of them"
            where = self.path or "the file"
            raise UserError(f"{where}: expected one of {', '.join(kinds)}; got {given}")
        return present[0]

    def done(self) -> None:
        """Reject the keys that have not been read."""
        for name in self._values:
            if name not in self._read:
                near = get_close_matches(name, self._read, n=1)
                advice = f"; did you mean {near[0]}?" if near else ""
                known = ", ".join(self._read)
                self.fail(name, f"unknown key{advice} (known: {known})")

    def _value(self, name: str) -> Any:
        self._read[name] = None
        return self._values.get(name)

    def _plain(self, name: str) -> str:
        value = self._values[name]
        if isinstance(value, bool):
            return "true" if value else "false"
        return self.text(name)


def _describe(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return repr(value)
