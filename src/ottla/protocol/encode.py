"""Nested dicts to the bytes of one message version, straight from kio's declarations.

kio's own writers need its frozen classes built first, which costs more than the writing; handlers
already have their reply as fields, so this goes from those to bytes. The bytes are the same as
kio's, which the tests verify.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.protocol.schema import EPOCH, FIXED, REQUIRED, Entity, Field, fields_of

Fields: TypeAlias = Mapping[str, Any]
"""A message or a struct that is to be encoded."""
FieldValue: TypeAlias = Any
"""Of the Python type that a field's wire type takes, or a mapping for a struct."""
Write: TypeAlias = Callable[[FieldValue, bytearray], None]


class Encoded(bytes):
    """An encoded struct: an array of its type, in its version, takes it unchanged."""


_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_MS: Final = timedelta(milliseconds=1)
_ONE_BYTE: Final = tuple(bytes((byte,)) for byte in range(0x80))


def ms(value: timedelta | datetime | int | None) -> int:
    """Milliseconds, of a duration or since 1970, from kio's or a handler's types."""
    if value is None:
        return -1
    if isinstance(value, timedelta):
        return value // _MS
    if isinstance(value, datetime):
        return (value - EPOCH) // _MS
    return value


def uvarint(value: int) -> bytes:
    """An unsigned number, seven bits a byte."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def writer_of(entity: Entity) -> Write:
    """The function that appends one message or struct, given as a mapping, to a buffer."""
    steps: list[Write] = []
    run: list[Field] = []
    for field in fields_of(entity):
        if field.tag is not None:
            continue
        if field.wire_type in FIXED and not field.is_array:
            run.append(field)
            continue
        if run:
            steps.append(_run(entity, run))
            run = []
        steps.append(field_writer(entity, field))
    if run:
        steps.append(_run(entity, run))
    if entity.__flexible__:
        steps.append(tags_writer(entity))
    if len(steps) == 1:
        return steps[0]

    def write(fields: Fields, out: bytearray) -> None:
        for step in steps:
            step(fields, out)

    return write


def _run(entity: Entity, run: list[Field]) -> Write:
    """Adjacent fields of fixed size, packed together."""
    pack = Struct(">" + "".join(FIXED[field.wire_type] for field in run)).pack
    parts = [(field.name, field.default, _CONVERT.get(field.wire_type)) for field in run]

    def write(fields: Fields, out: bytearray) -> None:
        get = fields.get
        try:
            out += pack(
                *[
                    convert(get(name, default)) if convert else get(name, default)
                    for name, default, convert in parts
                ]
            )
        except (StructError, TypeError, AttributeError) as error:
            raise _value_error(entity, fields, run) from error

    return write


def _uuid_bytes(value: UUID | None) -> bytes:
    return bytes(16) if value is None else value.bytes


_CONVERT: Final[dict[str, Callable[[FieldValue], object]]] = {
    "timedelta_i32": ms,
    "timedelta_i64": ms,
    "datetime_i64": ms,
    "uuid": _uuid_bytes,
}


def _value_error(entity: Entity, fields: Fields, run: list[Field]) -> Exception:
    for field in run:
        if field.default is REQUIRED and field.name not in fields:
            return KeyError(f"{entity.__name__}.{field.name}")
    values = {field.name: fields.get(field.name, field.default) for field in run}
    return ValueError(f"invalid values for {entity.__name__} v{entity.__version__}: {values}")


def field_writer(entity: Entity, field: Field) -> Write:
    """One field, looked up in its struct's mapping."""
    name, default = field.name, field.default
    put = _value(field, entity.__flexible__)

    def write(fields: Fields, out: bytearray) -> None:
        value = fields.get(name, default)
        if value is REQUIRED:
            raise KeyError(f"{entity.__name__}.{name}")
        try:
            put(value, out)
        except (TypeError, AttributeError, StructError) as error:
            message = f"invalid value for {entity.__name__}.{name}: {value!r:.200}"
            raise ValueError(message) from error

    return write


def _value(field: Field, flexible: bool) -> Write:
    if field.is_array:
        return _array(field, flexible)
    if field.struct is not None:
        return _maybe(_struct(field.struct)) if field.nullable else _struct(field.struct)
    if field.wire_type in FIXED:
        pack = Struct(">" + FIXED[field.wire_type]).pack
        convert = _CONVERT.get(field.wire_type, _same)
        return lambda value, out: out.extend(pack(convert(value)))
    is_string = field.wire_type == "string"
    return _sized_writer(is_string, flexible, nullable=field.nullable)


def _same(value: object) -> object:
    return value


def _struct(entity: Entity) -> Write:
    """A nested struct: a mapping, or an object of kio's where a default is one."""
    write = writer_of(entity)

    def put(value: FieldValue, out: bytearray) -> None:
        if not isinstance(value, Mapping):
            value = {field.name: getattr(value, field.name) for field in fields_of(entity)}
        write(value, out)

    return put


def _maybe(inner: Write) -> Write:
    def write(value: FieldValue, out: bytearray) -> None:
        if value is None:
            out += b"\xff"
        else:
            out += b"\x01"
            inner(value, out)

    return write


def _sized_writer(is_string: bool, flexible: bool, *, nullable: bool) -> Write:
    pack = _INT16.pack if is_string else _INT32.pack

    def write(value: FieldValue, out: bytearray) -> None:
        if value is None and nullable:
            out += b"\0" if flexible else pack(-1)
            return
        data = value.encode() if is_string else memoryview(value)
        out += uvarint(len(data) + 1) if flexible else pack(len(data))
        out += data

    return write


def item_writer(field: Field, flexible: bool) -> Write:
    """One element of an array."""
    return _value(field._replace(is_array=False, nullable=False), flexible)


def _array(field: Field, flexible: bool) -> Write:
    item = item_writer(field, flexible)
    nullable = field.nullable

    def write(values: FieldValue, out: bytearray) -> None:
        if values is None and nullable:
            out += b"\0" if flexible else b"\xff\xff\xff\xff"
            return
        out += uvarint(len(values) + 1) if flexible else _INT32.pack(len(values))
        for value in values:
            if type(value) is Encoded:
                out += value
            else:
                item(value, out)

    return write


def tags_writer(entity: Entity) -> Write:
    """Tagged fields in order; those with their default value are omitted."""
    tagged = sorted(
        (field.tag, field.name, _tagged_value(field), field)
        for field in fields_of(entity)
        if field.tag is not None
    )
    if not tagged:
        return lambda fields, out: out.extend(b"\0")
    unset = {name: _encode_value(put, field.neutral()) for _, name, put, field in tagged}

    def write(fields: Fields, out: bytearray) -> None:
        present = []
        for tag, name, put, _ in tagged:
            body = _encode_value(put, fields.get(name))
            if body and body != unset[name]:
                present.append(uvarint(tag) + uvarint(len(body)) + body)
        out += uvarint(len(present))
        for entry in present:
            out += entry

    return write


def _tagged_value(field: Field) -> Write:
    if field.struct is not None and not field.is_array:
        return _struct(field.struct)  # absence is how a tagged struct is null
    return _value(field._replace(nullable=True), flexible=True)


def _encode_value(put: Write, value: object) -> bytes:
    out = bytearray()
    if value is not None:
        put(value, out)
    return bytes(out)
