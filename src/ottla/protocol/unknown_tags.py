"""Removes tagged fields that kio does not know from a message.

Newer peers may add tagged fields to any version of a message, and those who do not know them ignore
them; kio's native reader refuses the message instead. So a message that it refused for this reason
is copied without them and read again. Only for messages whose lengths were checked.

Unknown fields inside of another tagged field are not removed, because the size of that one would
change; such a message stays refused.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from ottla.protocol.encode import uvarint
from ottla.protocol.length_check import Walk, compile_walk, read_tag_count, read_uvarint
from ottla.protocol.schema import Entity, fields_of

REFUSAL: Final = "Unknown tagged field"
"""How kio's message starts."""


class Edit(NamedTuple):
    """The bytes from `start` to `end` are replaced."""

    start: int
    end: int
    by: bytes


class Edits(list[Edit]):
    """Collects edits in place of the number of values that a walk counts down."""

    def __isub__(self, _: int) -> Edits:
        return self

    def __lt__(self, _: object) -> bool:
        return False


def without_unknown_tags(entity: Entity, body: memoryview, position: int) -> memoryview:
    """The message from `position` on, without the tagged fields that `entity` does not have."""
    edits = Edits()
    end, _ = _editing_walk(entity)(body, position, edits)  # type: ignore[arg-type]
    pieces: list[bytes | memoryview] = []
    for edit in sorted(edits):
        pieces += [body[position : edit.start], edit.by]
        position = edit.end
    return memoryview(b"".join([*pieces, body[position:end]]))


@cache
def _editing_walk(entity: Entity) -> Walk:
    return compile_walk(entity, _tags)


def _tags(entity: Entity) -> Walk:
    known_tags = {field.tag for field in fields_of(entity) if field.tag is not None}

    def walk(data: memoryview, position: int, edits: Edits) -> tuple[int, Edits]:
        count_at = position
        count, fields_at = read_tag_count(data, position)
        position, unknown = fields_at, 0
        for _ in range(count):
            start = position
            tag, position = read_uvarint(data, position)
            size, position = read_uvarint(data, position)
            position += size
            if tag not in known_tags:
                unknown += 1
                edits.append(Edit(start, position, b""))
        if unknown:
            edits.append(Edit(count_at, fields_at, uvarint(count - unknown)))
        return position, edits

    return walk  # type: ignore[return-value]
