"""Encodes a large message in slices, so that the event loop can run other tasks in between.

Owns where a slice ends: after a number of structs, at any depth. The bytes are the same as those of
`encode.writer_of`. Never waits: the caller decides what runs in between.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from struct import Struct
from typing import Final, NamedTuple

from ottla.protocol.encode import (
    Encoded,
    Fields,
    FieldValue,
    Write,
    field_writer,
    item_writer,
    tags_writer,
    uvarint,
)
from ottla.protocol.schema import Entity, fields_of

ITEMS: Final = 500
"""Structs in one slice: 3 ms if a struct takes 6 us."""
_INT32: Final = Struct(">i")


class _Array(NamedTuple):
    """An array, which may be long; `deep` is the struct of its elements, if that has arrays."""

    name: str
    default: object
    nullable: bool
    write_item: Write
    deep: Entity | None


def is_large(entity: Entity, fields: Fields) -> bool:
    """Whether the message has more elements of arrays than one slice."""
    left = ITEMS
    structs: list[tuple[Entity, Fields]] = [(entity, fields)]
    for kind, struct in structs:
        for name, deep in _arrays(kind):
            values: FieldValue = struct.get(name)
            if not values:
                continue
            left -= len(values)
            if left < 0:
                return True
            if deep is not None:
                structs += [(deep, item) for item in values if type(item) is not Encoded]
    return False


def write_in_pieces(entity: Entity, fields: Fields, out: bytearray) -> Generator[None, None, None]:
    """Append the message to `out`; yields after every slice."""
    left = ITEMS
    for _ in _write(entity, fields, out):
        left -= 1
        if not left:
            left = ITEMS
            yield


def _write(entity: Entity, fields: Fields, out: bytearray) -> Iterator[None]:
    """Yields after every element of an array."""
    for step in _steps(entity):
        if not isinstance(step, _Array):
            step(fields, out)
            continue
        values: FieldValue = fields.get(step.name, step.default)
        if values is None and step.nullable:
            out += b"\0" if entity.__flexible__ else b"\xff\xff\xff\xff"
            continue
        if not isinstance(values, list | tuple):
            raise ValueError(f"invalid value for {entity.__name__}.{step.name}: {values!r:.200}")
        out += uvarint(len(values) + 1) if entity.__flexible__ else _INT32.pack(len(values))
        for value in values:
            if type(value) is Encoded:
                out += value
            elif step.deep is not None:
                yield from _write(step.deep, value, out)
            else:
                step.write_item(value, out)
            yield


@cache
def _steps(entity: Entity) -> list[Write | _Array]:
    steps: list[Write | _Array] = []
    for field in fields_of(entity):
        if field.tag is not None:
            continue
        if field.is_array:
            deep = field.struct if field.struct and _has_arrays(field.struct) else None
            write = item_writer(field, entity.__flexible__)
            steps.append(_Array(field.name, field.default, field.nullable, write, deep))
        else:
            steps.append(field_writer(entity, field))
    if entity.__flexible__:
        steps.append(tags_writer(entity))
    return steps


@cache
def _arrays(entity: Entity) -> list[tuple[str, Entity | None]]:
    """The name of each array, and the struct of its elements if that has arrays."""
    return [(step.name, step.deep) for step in _steps(entity) if isinstance(step, _Array)]


@cache
def _has_arrays(entity: Entity) -> bool:
    return any(field.is_array and field.tag is None for field in fields_of(entity))
