"""Values for any message: as the fields a handler would give, and as the object kio would make.

`SERVED` is the range of Kafka 4.2, which is what the broker offers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st
from kio.serial import entity_writer

from ottla.model.errors import ErrorCode
from ottla.protocol.schema import EPOCH, Entity, Field, MessageKind, fields_of, message, versions

SERVED: Final = {
    0: (3, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9),
    12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7),
    20: (1, 6), 21: (0, 2), 22: (0, 6), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2),
    28: (0, 5), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 4),
    36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 42: (0, 2), 43: (0, 2),
    44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0),
    57: (0, 2), 60: (0, 2), 61: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1), 69: (0, 1), 74: (0, 1),
    75: (0, 0),
}  # fmt: skip
BETWEEN_BROKERS: Final = {4: (0, 7), 5: (0, 4), 6: (0, 8), 7: (0, 3)}
ALL_KEYS: Final = sorted(SERVED | BETWEEN_BROKERS)


def served_versions(key: int) -> list[int]:
    first, last = (SERVED | BETWEEN_BROKERS)[key]
    return [version for version in versions(key) if first <= version <= last]


def messages(key: int) -> Iterator[tuple[int, MessageKind, Entity]]:
    for version in served_versions(key):
        for kind in MessageKind:
            yield version, kind, message(key, version, kind)


def filled(entity: Entity, count: int = 2) -> dict[str, Any]:
    """Fields with something in every place, tagged fields included."""
    return {
        field.name: [_filled(field, count) for _ in range(count)]
        if field.is_array
        else _filled(field, count)
        for field in fields_of(entity)
    }


def sparse(entity: Entity) -> dict[str, Any]:
    """Fields with as little as is allowed: null, empty, or left to the default."""
    return {
        field.name: None
        if field.nullable
        else ([] if field.is_array else _filled(field._replace(struct=None), 0))
        for field in fields_of(entity)
        if field.tag is None and not (field.struct and not field.is_array and not field.nullable)
    } | {
        field.name: sparse(field.struct)
        for field in fields_of(entity)
        if field.tag is None and field.struct and not field.is_array and not field.nullable
    }


def _filled(field: Field, count: int) -> Any:
    if field.struct is not None:
        return filled(field.struct, count)
    return _VALUES.get(field.wire_type, 7)


_VALUES: Final[dict[str, Any]] = {
    "string": "tøpic",
    "bytes": b"\x00\xff",
    "records": b"records",
    "uuid": UUID(int=0x1234_5678_9ABC_DEF0),
    "bool": True,
    "float64": 1.5,
    "error_code": ErrorCode.not_coordinator,
    "timedelta_i32": 1_500,
    "timedelta_i64": 86_400_000,
    "datetime_i64": 1_700_000_000_123,
}


def any_fields(entity: Entity) -> st.SearchStrategy[dict[str, Any]]:
    """Every set of fields a handler could give this message."""
    return st.fixed_dictionaries({field.name: _any(field) for field in fields_of(entity)})


def _any(field: Field) -> st.SearchStrategy[Any]:
    one = any_fields(field.struct) if field.struct else _ANY[field.wire_type]
    whole = st.lists(one, max_size=2) if field.is_array else one
    return st.none() | whole if field.nullable and field.tag is None else whole


def _integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low = -(2 ** (bits - 1)) if signed else 0
    return st.integers(low, 2 ** (bits - signed) - 1)


_ANY: Final[dict[str, st.SearchStrategy[Any]]] = {
    "string": st.text(max_size=200),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
    "uuid": st.uuids(),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "error_code": st.sampled_from(list(ErrorCode)),
    "int8": _integers(8),
    "int16": _integers(16),
    "int32": _integers(32),
    "int64": _integers(64),
    "uint16": _integers(16, signed=False),
    "timedelta_i32": _integers(32),
    "timedelta_i64": st.integers(-(10**15), 10**15),
    "datetime_i64": st.integers(0, 10**13),
}


def as_kio(entity: Entity, fields: dict[str, Any]) -> Any:
    """The object kio would have made of these fields."""
    given = {
        field.name: _as_kio(field, fields[field.name])
        for field in fields_of(entity)
        if field.name in fields
    }
    missing = {
        field.name: field.neutral() for field in fields_of(entity) if field.name not in fields
    }
    return entity(**given, **missing)


def _as_kio(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.is_array:
        return tuple(_as_kio(field._replace(is_array=False), item) for item in value)
    if field.struct is not None:
        return as_kio(field.struct, value)
    if field.wire_type.startswith("timedelta"):
        return timedelta(milliseconds=value)
    if field.wire_type == "datetime_i64":
        return EPOCH + timedelta(milliseconds=value)
    if field.wire_type == "uuid" and value.int == 0:
        return None
    return value


class Sink:
    """What kio writes to."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def kio_bytes(entity: Entity, fields: dict[str, Any]) -> bytes:
    """The body of this message as kio itself writes it."""
    sink = Sink()
    entity_writer(entity)(sink, as_kio(entity, fields))  # type: ignore[arg-type]
    return bytes(sink.data)
