"""Keys and values that were written with schemas of a registry, as columns.

Owns: which schema a value is read with. Each value names the schema that it was written with, by
number: it is looked up once in a worker. The reader's schema is one for the whole run, as columns
are: Avro's rules of resolution, or Protobuf's, lead from the one to the other, and JSON is checked
by the writer's schema and read by the reader's. Never: asks for a reader's schema on a worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding import avro, json_schema, protobuf, wire_format
from ottla.spark.pipelines.decoding.registry import (
    RegisteredSchema,
    UnknownSchema,
    registry_client,
)
from ottla.spark.pipelines.decoding.worker_decoding import KEY, Decode, Row, with_fields, with_key
from ottla.spark.pipelines.spec import Format, Registry

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

T = TypeVar("T")
DecodeAny: TypeAlias = Callable[[bytes], object]
"""A value of any type: keys are often plain."""


def resolve(format: Format, where: str) -> Format:
    """With the reader's schema, which the registry is asked for where the file has none."""
    if format.registry is None or format.schema:
        return format
    client = registry_client(format.registry)
    try:
        found = client.of_subject(format.subject, format.version, format.kind)
    except (UserError, ConnectionError, UnknownSchema) as error:
        raise UserError(f"{where}.schema: {error}") from None
    made = replace(format, schema=found.text, references=found.references)
    if format.kind == "protobuf" and not format.message:
        return replace(made, message=protobuf.message_name(descriptors(made)))
    return made


def decode_values(origin: DataFrame, format: Format, where: str) -> DataFrame:
    """The fields of values, beside the origin."""
    import pyarrow as pa

    format = resolve(format, where)
    kind = arrow_type(format, where)
    if not pa.types.is_struct(kind):
        raise UserError(f"{where}.schema: expected a record, got {kind}")
    fields = pa.schema([kind.field(index) for index in range(kind.num_fields)])
    return with_fields(origin, fields, lambda: _row_decoder(decoder(format, kind)), where)


def decoded_key(frame: DataFrame, format: Format, where: str) -> DataFrame:
    """A view of `decoded`, with the column `key`."""
    format = resolve(format, f"{where}.key")
    kind = arrow_type(format, f"{where}.key")
    return with_key(frame, kind, lambda: _key_decoder(decoder(format, kind)), where)


def arrow_type(format: Format, where: str) -> pa.DataType:
    """The type of a whole value, by the reader's schema."""
    import pyarrow as pa

    match format.kind:
        case "avro":
            return avro.arrow_type(format.schema, where, format.references)
        case "json-schema":
            return json_schema.arrow_type(format.schema, where, format.references)
        case "protobuf":
            fields = protobuf.arrow_schema(descriptors(format), format.message, where)
            return pa.struct(list(fields))
        case other:
            raise AssertionError(other)


def decoder(format: Format, kind: pa.DataType) -> DecodeAny:
    """Decodes values, with a number in front where the format has a registry."""
    match format.kind:
        case "avro":
            return _avro_decoder(format)
        case "json-schema":
            return _json_decoder(format, kind)
        case "protobuf":
            return _protobuf_decoder(format)
        case other:
            raise AssertionError(other)


def descriptors(format: Format) -> bytes:
    """Of a Protobuf format: those of the registry, or of the file that it names."""
    if format.subject:
        return protobuf.registered_descriptors(format.schema, format.references)
    return Path(format.schema).read_bytes()


def _row_decoder(decode: DecodeAny) -> Decode:
    def decode_row(value: bytes) -> Row:
        row = decode(value)
        if not isinstance(row, dict):
            raise ValueError(f"expected a record, got {type(row).__name__}")
        return row

    return decode_row


def _key_decoder(decode: DecodeAny) -> Decode:
    return lambda value: {KEY: decode(value)}


def _avro_decoder(format: Format) -> DecodeAny:
    reader = avro.parse(format.schema, format.references)
    if format.registry is None:
        return lambda value: avro.read(value, reader)
    writers = _Writers(format.registry, format.kind, lambda found: avro.parse(*found))

    def decode(value: bytes) -> object:
        schema_id, data = wire_format.read(value)
        return avro.read(data, writers.of(schema_id), reader)

    return decode


def _json_decoder(format: Format, kind: pa.DataType) -> DecodeAny:
    if format.registry is None:
        check = json_schema.validator(format.schema, format.references)
        return lambda value: _checked_json(value, check, kind)
    checks = _Writers(format.registry, format.kind, lambda found: json_schema.validator(*found))

    def decode(value: bytes) -> object:
        schema_id, data = wire_format.read(value)
        return _checked_json(data, checks.of(schema_id), kind)

    return decode


def _checked_json(
    data: bytes, check: Callable[[json_schema.JsonValue], None], kind: pa.DataType
) -> object:
    parsed = json.loads(data)
    check(parsed)
    return json_schema.from_json(parsed, kind)


def _protobuf_decoder(format: Format) -> DecodeAny:
    message = format.message
    decode_message = protobuf.decoder(descriptors(format), message)
    if format.registry is None:
        return decode_message
    writers = _Writers(
        format.registry, format.kind, lambda found: protobuf.registered_descriptors(*found)
    )
    names: dict[tuple[int, tuple[int, ...]], str] = {}

    def decode(value: bytes) -> object:
        schema_id, data = wire_format.read(value)
        indexes, data = wire_format.read_indexes(data)
        written = names.get((schema_id, indexes))
        if written is None:
            written = protobuf.message_name(writers.of(schema_id), indexes)
            names[schema_id, indexes] = written
        if written != message:
            raise ValueError(f"the message is a {written}; expected {message}")
        return decode_message(data)

    return decode


class _Writers(Generic[T]):
    """Schemas of writers by number, each looked up once, those that do not exist included."""

    def __init__(
        self, registry: Registry, kind: str, prepare: Callable[[RegisteredSchema], T]
    ) -> None:
        self._client = registry_client(registry)
        self._kind = kind
        self._prepare = prepare
        self._by_id: dict[int, T] = {}
        self._missing: dict[int, str] = {}

    def of(self, schema_id: int) -> T:
        if schema_id in self._by_id:
            return self._by_id[schema_id]
        if schema_id in self._missing:
            raise UnknownSchema(self._missing[schema_id])
        try:
            found = self._prepare(self._client.by_id(schema_id, self._kind))
        except UnknownSchema as error:
            self._missing[schema_id] = str(error)
            raise
        self._by_id[schema_id] = found
        return found
