"""Reads the fields of a JSON object; every error names the field and what was expected. Pure.

Owns: the types of fields. Never: knows which fields a request has; the callers do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.gateway.errors import invalid

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


class JsonObject:
    """An object of a request; `path` is where it stands, such as `records[3]`."""

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, dict):
            raise invalid(path or "request body", f"an object, not {kind_of(value)}")
        self._fields: Mapping[str, object] = value
        self._path = path

    def name(self, field: str) -> str:
        """The field as errors name it: with the objects around it."""
        return f"{self._path}.{field}" if self._path else field

    def allow(self, *fields: str) -> None:
        """Refuse all other fields: a misspelt one would have no effect."""
        for field in self._fields:
            if field not in fields:
                raise invalid(self.name(field), f"no such field; known are {', '.join(fields)}")

    def get(self, field: str) -> object:
        """Any JSON value; null where it is missing."""
        return self._fields.get(field)

    def text(self, field: str) -> str | None:
        value = self.get(field)
        if value is None or isinstance(value, str):
            return value
        raise invalid(self.name(field), f"a string, not {kind_of(value)}")

    def required_text(self, field: str) -> str:
        value = self.text(field)
        if not value:
            raise invalid(self.name(field), "a string that is not empty")
        return value

    def integer(self, field: str, low: int = 0, high: int = INT32_MAX) -> int | None:
        value = self.get(field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            shown = value if isinstance(value, int | float) else kind_of(value)
            raise invalid(self.name(field), f"an integer from {low} to {high}, not {shown}"[:200])
        return value

    def required_integer(self, field: str, low: int = 0, high: int = INT32_MAX) -> int:
        value = self.integer(field, low, high)
        if value is None:
            raise invalid(self.name(field), f"an integer from {low} to {high}")
        return value

    def items(self, field: str, max_count: int) -> list[object] | None:
        """The elements of an array, which must not be more than `max_count`."""
        value = self.get(field)
        if value is None:
            return None
        if not isinstance(value, list):
            raise invalid(self.name(field), f"an array, not {kind_of(value)}")
        if len(value) > max_count:
            raise invalid(self.name(field), f"at most {max_count} elements, not {len(value)}")
        return value

    def objects(self, field: str, max_count: int) -> list[JsonObject] | None:
        """The objects of an array."""
        items = self.items(field, max_count)
        if items is None:
            return None
        name = self.name(field)
        return [JsonObject(item, f"{name}[{index}]") for index, item in enumerate(items)]

    def texts(self, field: str, max_count: int) -> list[str] | None:
        """The strings of an array, none of them empty."""
        items = self.items(field, max_count)
        if items is None:
            return None
        texts = [item for item in items if isinstance(item, str) and item]
        if len(texts) < len(items):
            raise invalid(self.name(field), "an array of strings that are not empty")
        return texts


def kind_of(value: object) -> str:
    """What JSON calls the type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "an array"
        case _:
            return "an object"
