"""Where two replies differ.

Owns: paths to fields, and how elements of two arrays are matched. Never: excuses a difference.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

# What tells the elements of an array apart, in the order in which it is looked for.
IDENTIFYING: Final = (
    "api_key",
    "name",
    "topic_name",
    "topic",
    "resource_name",
    "group_id",
    "transactional_id",
    "topic_id",
    "partition_index",
    "partition",
    "index",
    "producer_id",
    "member_id",
    "config_name",
    "entity_type",
    "user",
    "mechanism",
    "log_dir",
    "broker_id",
    "node_id",
    "base_offset",
    "key",
)
MISSING: Final = "(nothing)"


class Difference(NamedTuple):
    """One field that the sides do not agree on; its path names array elements by their ids."""

    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.path}: theirs {self.theirs!r}, ours {self.ours!r}"


def differences(theirs: Any, ours: Any, path: str = "") -> list[Difference]:
    """Every difference, in the order of the fields."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return _of_structs(theirs, ours, path)
    if isinstance(theirs, list) and isinstance(ours, list):
        return _of_structs(_keyed(theirs), _keyed(ours), path)
    same = type(theirs) is type(ours) and theirs == ours
    return [] if same else [Difference(path, theirs, ours)]


def _of_structs(theirs: dict[str, Any], ours: dict[str, Any], path: str) -> list[Difference]:
    found: list[Difference] = []
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        inner = f"{path}/{name}" if path else str(name)
        found += differences(theirs.get(name, MISSING), ours.get(name, MISSING), inner)
    return found


def _keyed(elements: list[Any]) -> dict[str, Any]:
    """An array as a mapping; its order is no promise of the protocol where elements have names."""
    keyed: dict[str, Any] = {}
    for at, element in enumerate(elements):
        key = _key(element, at)
        while key in keyed:
            key += "+"
        keyed[key] = element
    return keyed


def _key(element: Any, at: int) -> str:
    if not isinstance(element, dict):
        return str(at)
    named = [str(element[name]) for name in IDENTIFYING if element.get(name) not in (None, "")]
    return named[0] if named else str(at)
