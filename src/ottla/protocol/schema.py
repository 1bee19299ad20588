"""The messages of the protocol as kio declares them: which exist, and what their fields are.

Owns the lookup of a message's class, loaded one version at a time because all of them together are
hundreds of modules, and a plain description of its fields, from which `length_check` and `encode`
are built. Never reads or writes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from pkgutil import resolve_name
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias, cast, get_args, get_origin

import kio.static.protocol
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from ottla.protocol import interbroker

Entity: TypeAlias = type[kio.static.protocol.Entity]
KioMessage: TypeAlias = Any
"""A decoded request or reply: kio's class of its API and version, which only its header tells. A
field that the version lacks has its default."""
KioStruct: TypeAlias = Any
"""A struct in a message, for instance a topic with its partitions: the same holds for it."""
Annotation: TypeAlias = Any
"""The declared type of a field: a class, a union, or a generic alias."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class MessageKind(Enum):
    """Whether a message is a request or a response."""

    REQUEST = EntityType.request
    RESPONSE = EntityType.response


class Required:
    """The default of a field without one; packing it fails, as a truth value too."""

    def __bool__(self) -> bool:
        raise TypeError("required field is missing")


REQUIRED: Final = Required()


class Field(NamedTuple):
    """One field of a message: its wire type, or the class of the struct it holds."""

    name: str
    wire_type: str
    struct: Entity | None
    is_array: bool
    nullable: bool
    tag: int | None
    default: object

    def neutral(self) -> object:
        """The value of the field in a version that does not have it."""
        if self.default is not REQUIRED:
            return self.default
        if self.nullable:
            return None
        return () if self.is_array else _NEUTRAL.get(self.wire_type, 0)


_NEUTRAL: Final[dict[str, object]] = {
    "string": "",
    "bytes": b"",
    "bool": False,
    "float64": 0.0,
    "error_code": ErrorCode.none,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "datetime_i64": EPOCH,
    "struct": None,
}

# How a value of fixed size is packed by `struct`.
FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}


class UnknownApi(LookupError):
    """There is no such API or version."""


def versions(key: int) -> tuple[int, ...]:
    """Every version of an API that has a class, in ascending order."""
    if key in interbroker.VERSIONS:
        return tuple(interbroker.VERSIONS[key])
    return tuple(sorted(schema_name_map[api_key_map[key]])) if key in api_key_map else ()


@cache
def message(key: int, version: int, kind: MessageKind) -> Entity:
    """The class of one message."""
    if version not in versions(key):
        raise UnknownApi(f"unknown version {version} of api key {key}")
    if key in interbroker.VERSIONS:
        return interbroker.message(key, version, response=kind is MessageKind.RESPONSE)
    entity: Entity = resolve_name(schema_name_map[api_key_map[key]][version][kind.value])
    _allow_no_moment(entity)
    return entity


def _allow_no_moment(entity: Entity) -> None:
    """Kafka writes -1 for a missing timestamp, also where kio's declaration does not allow null."""
    for field in fields(entity):
        _, inner = _without_none(field.type)
        if field.metadata.get("kafka_type") == "datetime_i64":
            field.type = inner | None
        elif is_dataclass(struct := get_args(inner)[0] if get_args(inner) else inner):
            _allow_no_moment(cast(Entity, struct))


@cache
def fields_of(entity: Entity) -> tuple[Field, ...]:
    """The fields of a message or struct, in the order of the wire."""
    return tuple(
        _field(
            field.name,
            field.type,
            field.metadata,
            REQUIRED if field.default is MISSING else field.default,
        )
        for field in fields(entity)
    )


def _field(name: str, declared: Annotation, metadata: Mapping[str, Any], default: object) -> Field:
    if name == "throttle_time":
        default = timedelta(0)  # nearly always so, and in nearly every reply
    nullable, inner = _without_none(declared)
    origin: Annotation = get_origin(inner)
    is_array = origin is tuple
    if is_array:
        _, inner = _without_none(get_args(inner)[0])  # a null uuid is the zero one, also in arrays
    struct = cast(Entity, inner) if is_dataclass(inner) else None
    return Field(
        name=name,
        wire_type="struct" if struct else metadata["kafka_type"],
        struct=struct,
        is_array=is_array,
        nullable=nullable,
        tag=metadata.get("tag"),
        default=default,
    )


def _without_none(declared: Annotation) -> tuple[bool, Annotation]:
    options = get_args(declared)
    if NoneType not in options:
        return False, declared
    return True, next(option for option in options if option is not NoneType)


def read_missing_fields_as_defaults(key: int, version: int, kind: MessageKind) -> None:
    """Let a handler read any field that any version of this message has.

    A field that this version lacks has the default of the newest version that has it. The other
    versions are loaded only when such a field is first read.
    """
    _add_defaults(message(key, version, kind), key, kind, ())


def _add_defaults(entity: Entity, key: int, kind: MessageKind, path: tuple[str, ...]) -> None:
    def default(self: object, name: str) -> object:
        if not name.startswith("_"):
            for version in reversed(versions(key)):
                for field in _fields_at(message(key, version, kind), path):
                    if field.name == name:
                        setattr(type(self), name, field.neutral())  # looked up once
                        return field.neutral()
        raise AttributeError(f"no version of {type(self).__name__} has a field {name!r}")

    setattr(entity, "__getattr__", default)  # noqa: B010 - no field that a type knows of
    for field in fields_of(entity):
        if field.struct is not None:
            _add_defaults(field.struct, key, kind, (*path, field.name))


def _fields_at(entity: Entity, path: tuple[str, ...]) -> tuple[Field, ...]:
    for step in path:
        inner = [field.struct for field in fields_of(entity) if field.name == step and field.struct]
        if not inner:
            return ()
        entity = inner[0]
    return fields_of(entity)
