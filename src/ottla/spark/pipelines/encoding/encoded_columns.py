"""Columns encoded on the workers, with the number of their schema in front.

Owns: which schema is used, and that it is registered: by the first worker that has a row, so that
`validate`, `plan` and `test` change nothing in a registry. Registering a schema that is there gives
its number. Rows that a schema does not allow fail the query: nothing is written for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding import avro, json_schema, protobuf, wire_format
from ottla.spark.pipelines.decoding.registry import RegisteredSchema, registry_client
from ottla.spark.pipelines.encoding.column_schemas import made_schema, schema_name
from ottla.spark.pipelines.spec import Encoding

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

COLUMNS: Final = "columns"
LATEST: Final = "latest"
Encode: TypeAlias = Callable[[object], bytes]


class SinkSchema(NamedTuple):
    """The schema that values are written with; without a number it is registered first."""

    schema: RegisteredSchema
    schema_id: int | None = None


def encode_column(encoding: Encoding, frame: DataFrame, value: Column) -> Column:
    """A column as bytes; null where it is null."""
    import pyarrow as pa
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import to_arrow_type

    spark_type = frame.select(value).schema[0].dataType
    kind = to_arrow_type(spark_type, timezone="UTC")
    schema = _schema(encoding, kind)

    def run(values: pa.Array) -> pa.Array:
        rows = values.to_pylist(maps_as_pydicts="strict")
        if all(row is None for row in rows):
            return pa.nulls(len(rows), pa.binary())
        encode = _encoder(encoding, schema)
        return pa.array([None if row is None else encode(row) for row in rows], pa.binary())

    run.__annotations__.update({"values": pa.Array, "return": pa.Array})  # Spark reads them
    column: Column = arrow_udf(run, "binary")(value)  # type: ignore[call-overload]
    return column


def _schema(encoding: Encoding, kind: pa.DataType) -> SinkSchema:
    """UserError for columns that a schema cannot have."""
    if encoding.schema == LATEST:
        client = registry_client(encoding.registry)
        try:
            schema_id, found = client.latest_id(encoding.subject, encoding.kind)
        except ConnectionError as error:
            raise UserError(str(error)) from None
        return SinkSchema(found, schema_id)
    if encoding.schema != COLUMNS:
        return SinkSchema(RegisteredSchema(encoding.schema))
    name = schema_name(encoding.subject)
    return SinkSchema(RegisteredSchema(made_schema(encoding.kind, kind, name)))


def _encoder(encoding: Encoding, sink_schema: SinkSchema) -> Encode:
    text, references = sink_schema.schema
    schema_id = sink_schema.schema_id
    if schema_id is None:
        client = registry_client(encoding.registry)
        schema_id = client.id_of(encoding.subject, text, encoding.kind)
    front = wire_format.front(schema_id)
    match encoding.kind:
        case "avro":
            to_avro = avro.encoder(text, references)
            return lambda row: front + to_avro(row)
        case "json-schema":
            return _json_encoder(front, sink_schema.schema)
        case "protobuf":
            return _protobuf_encoder(front, sink_schema.schema)
        case other:
            raise AssertionError(other)


def _json_encoder(front: bytes, schema: RegisteredSchema) -> Encode:
    check = json_schema.validator(*schema)

    def encode(row: object) -> bytes:
        data = json_schema.to_json(row)
        check(json.loads(data))
        return front + data

    return encode


def _protobuf_encoder(front: bytes, schema: RegisteredSchema) -> Encode:
    descriptors = protobuf.registered_descriptors(*schema)
    message = protobuf.message_name(descriptors)
    to_protobuf = protobuf.encoder(descriptors, message)
    front += wire_format.indexes_front(wire_format.FIRST_MESSAGE)
    return lambda row: front + to_protobuf(json.loads(json_schema.to_json(row)))
