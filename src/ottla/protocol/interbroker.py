"""The messages between controller and brokers, which kio no longer has.

LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown were removed from Kafka with
ZooKeeper. `interbroker_fields` declares them once; here they become classes like kio's own, one
version at a time, so that the same reader, length check and encoder work for them.
"""

from __future__ import annotations

from dataclasses import field as dataclass_field
from dataclasses import make_dataclass
from functools import cache
from typing import Any, ClassVar, Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeaderV1
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i64

from ottla.protocol.interbroker_fields import (
    CONTROLLED_SHUTDOWN,
    LEADER_AND_ISR,
    NO_DEFAULT,
    REQUESTS,
    RESPONSES,
    STOP_REPLICA,
    UPDATE_METADATA,
    VERSIONS,
    Declared,
)

__all__ = [
    "CONTROLLED_SHUTDOWN",
    "LEADER_AND_ISR",
    "OLDEST_SENT",
    "STOP_REPLICA",
    "UPDATE_METADATA",
    "VERSIONS",
    "message",
]

OLDEST_SENT: Final = {LEADER_AND_ISR: 5, STOP_REPLICA: 3, UPDATE_METADATA: 7}
"""The first versions with topic ids, or leader epochs: older ones have another form, and are never
sent. A broker without them cannot be in a cluster with this release."""

MessageClass: TypeAlias = type[Any]
Static: TypeAlias = Any
"""An attribute of the class that kio reads: the version, the API key, or the header's class."""
Annotation: TypeAlias = Any
"""The declared type of a field: a class, a union, or a generic alias."""

_PYTHON: Final[dict[str, Annotation]] = {
    "bool": bool,
    "int8": i8,
    "int16": i16,
    "int32": i32,
    "int64": i64,
    "string": str,
    "uuid": UUID,
    "error_code": ErrorCode,
}


@cache
def message(key: int, version: int, *, response: bool) -> MessageClass:
    """The class of one message in one version, as kio would have generated it."""
    declared = (RESPONSES if response else REQUESTS)[key]
    flexible = version >= declared.flexible_since
    header: MessageClass
    if response:
        header = ResponseHeaderV1 if flexible else ResponseHeaderV0
    else:
        header = RequestHeaderV2 if flexible else RequestHeaderV1
    shared = {
        "__version__": i16(version),
        "__flexible__": flexible,
        "__api_key__": i16(key),
        "__header_schema__": header,
    }
    kind = EntityType.response if response else EntityType.request
    return _entity(declared.name, declared.fields, shared, kind)


def _entity(
    name: str, declared: tuple[Declared, ...], shared: dict[str, Static], kind: EntityType
) -> MessageClass:
    version = shared["__version__"]
    columns: list[tuple[str, Annotation, object]] = [
        (field.name, _python_type(field, shared), _options(field))
        for field in declared
        if field.since <= version <= field.until
    ]
    statics: dict[str, Static] = {"__type__": kind, **shared}
    columns += [(attribute, ClassVar[object], value) for attribute, value in statics.items()]
    return make_dataclass(name, columns, frozen=True, slots=True, kw_only=True)


def _python_type(field: Declared, shared: dict[str, Static]) -> Annotation:
    element = field.wire_type.removesuffix("[]")
    inner = (
        _entity(element, field.fields, shared, EntityType.nested)
        if field.fields
        else _PYTHON[element]
    )
    declared = tuple[inner, ...] if field.wire_type.endswith("[]") else inner  # type: ignore[valid-type]
    return declared | None if field.nullable else declared


def _options(field: Declared) -> object:
    metadata: dict[str, object] = {}
    if not field.fields:
        metadata["kafka_type"] = field.wire_type.removesuffix("[]")
    if field.tag is not None:
        metadata["tag"] = field.tag
    if field.default is NO_DEFAULT:
        return dataclass_field(metadata=metadata)
    return dataclass_field(metadata=metadata, default=field.default)
