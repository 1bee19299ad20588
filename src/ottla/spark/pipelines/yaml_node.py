"""One place in a pipeline file, and the questions that may be asked of it.

Owns: how a mistake in a file is said: where it is (`sinks[2].topic.name`), what stands there and
what was expected. Never: knows what a pipeline is made of.

Whoever has asked all its questions calls `done`: what nobody asked for is a word the file should
not have, and is said with the nearest one that it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from ottla.model.errors import UserError


class Node:
    """A mapping of the file, at its path."""

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, Mapping):
            raise UserError(f"{path or 'the file'}: expected names and values, got {_shown(value)}")
        for name in value:
            if not isinstance(name, str):
                raise UserError(f"{path or 'the file'}: the name {name!r} is not text; quote it")
        self.path = path
        self._values: Mapping[str, Any] = value
        self._asked: dict[str, None] = {}

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def fail(self, name: str, message: str) -> NoReturn:
        raise UserError(f"{self.at(name)}: {message}")

    def check(self, name: str, read: Callable[[], object]) -> None:
        """What somebody else says is wrong there, said with its place."""
        try:
            read()
        except UserError as mistake:
            self.fail(name, str(mistake))

    def has(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str | None = None) -> str:
        """Text, or a number written without quotes; it must be there unless it has a default."""
        value = self._value(name)
        if value is None:
            if default is None:
                self.fail(name, "is missing")
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(name, f"expected text, got {_shown(value)}")
        return str(value)

    def maybe(self, name: str) -> str | None:
        return None if self._value(name) is None else self.text(name)

    def choice(self, name: str, among: Sequence[str], default: str | None = None) -> str:
        value = self.text(name, default)
        if value not in among:
            self.fail(name, f"{value!r} is none of {', '.join(among)}")
        return value

    def number(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        value = self._value(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(name, f"expected a whole number, at least {least}, got {_shown(value)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or one text alone; none when it is not there."""
        value = self._value(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self.fail(name, f"expected text or a list of texts, got {_shown(value)}")
        return tuple(value)

    def table(self, name: str) -> dict[str, str]:
        """Names and texts, such as options; none when it is not there."""
        value = self._value(name)
        if value is None:
            return {}
        inner = Node(value, self.at(name))
        return {key: inner._plain(key) for key in value}

    def node(self, name: str) -> Node:
        if self._value(name) is None:
            self.fail(name, "is missing")
        return Node(self._values[name], self.at(name))

    def named(self, name: str) -> Iterator[tuple[str, Node]]:
        """The mappings below a name, each with its own; none when it is not there."""
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
            self.fail(name, f"expected a list, got {_shown(value)}")
        return [Node(one, f"{self.at(name)}[{at}]") for at, one in enumerate(value)]

    def raw(self, name: str) -> Any:
        """Whatever stands there."""
        return self._value(name)

    def one_of(self, kinds: Sequence[str]) -> str:
        """The one of these names that is there."""
        found = [kind for kind in kinds if kind in self._values]
        for kind in kinds:
            self._asked[kind] = None
        if len(found) != 1:
            said = " and ".join(found) if found else "none of them"
            where = self.path or "the file"
            raise UserError(f"{where}: expected one of {', '.join(kinds)}; got {said}")
        return found[0]

    def done(self) -> None:
        """Everything that may be here has been asked for."""
        for name in self._values:
            if name not in self._asked:
                near = get_close_matches(name, self._asked, n=1)
                advice = f"; did you mean {near[0]}?" if near else ""
                known = ", ".join(self._asked)
                self.fail(name, f"there is no such name here{advice} (known: {known})")

    def _value(self, name: str) -> Any:
        self._asked[name] = None
        return self._values.get(name)

    def _plain(self, name: str) -> str:
        value = self._values[name]
        if isinstance(value, bool):
            return "true" if value else "false"
        return self.text(name)


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "names and values"
        case list():
            return "a list"
        case _:
            return repr(value)
