"""What a row is: the columns a source gives, and those a sink takes.

Owns: the schema of Spark's Kafka connector in Spark's words and in Arrow's, the check of what a
query wants to write, and the last step from decoded columns to the Arrow batch Spark expects.
Never: talks to a broker.

pyspark and pyarrow are imported where they are used: options are checked, and offsets planned,
without either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"
HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"

_READ: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key: string, value: binary>>",
}

_WRITTEN: Final = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    HEADERS: (HEADERS_TYPE,),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""The columns a sink takes, and their types. `timestamp` is ours."""

DECODED: Final = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestampType": "timestamp_type",
    HEADERS: "headers",
}
"""Which column of a decoded batch each one is; topic and partition are the same in all rows."""


def schema(columns: Sequence[str]) -> str:
    """What a source gives, as Spark reads a schema."""
    return ", ".join(f"{name} {_READ[name]}" for name in columns)


def struct(columns: Sequence[str]) -> StructType:
    """The same as Spark's own type; made by hand, as parsing `schema` takes a session."""
    from pyspark.sql import types as T

    simple = {
        "binary": T.BinaryType(),
        "string": T.StringType(),
        "int": T.IntegerType(),
        "long": T.LongType(),
        "timestamp": T.TimestampType(),
    }
    header = T.StructType().add("key", T.StringType()).add("value", T.BinaryType())
    return T.StructType(
        [T.StructField(name, simple.get(_READ[name]) or T.ArrayType(header)) for name in columns]
    )


class SinkColumns(NamedTuple):
    """The columns of a query that a sink writes, by position; None where there is none."""

    value: int
    key: int | None
    topic: int | None
    headers: int | None
    partition: int | None
    timestamp: int | None


def written(schema: StructType, topic: str | None) -> SinkColumns:
    """Where each column is; UserError where one is missing or has another type."""
    places: dict[str, int] = {}
    for place, column in enumerate(schema.fields):
        if column.name in _WRITTEN:
            _check_type(column.name, column.dataType)
            places[column.name] = place
    if "value" not in places:
        raise UserError("no column named value: the sink needs it")
    if topic is None and "topic" not in places:
        raise UserError("topic: expected the option topic, or a column named topic")
    return SinkColumns(
        places["value"],
        places.get("key"),
        None if topic is not None else places["topic"],
        places.get(HEADERS),
        places.get("partition"),
        places.get("timestamp"),
    )


def _check_type(name: str, type: DataType) -> None:
    shown = type.simpleString()
    if shown not in _WRITTEN[name]:
        expected = " or ".join(_WRITTEN[name])
        raise UserError(f"the column {name} is of type {shown}: expected {expected}")


def shaped(batch: pa.RecordBatch, tp: TopicPartition, into: pa.Schema) -> pa.RecordBatch:
    """The columns of a decoded batch as Spark wants them, names, order and types."""
    import pyarrow as pa

    arrays = [_column(batch, tp, field) for field in into]
    return pa.RecordBatch.from_arrays(arrays, schema=into)


def _column(batch: pa.RecordBatch, tp: TopicPartition, field: pa.Field) -> pa.Array:
    import pyarrow as pa

    if field.name == "topic":
        return pa.repeat(pa.scalar(tp.topic, field.type), batch.num_rows)
    if field.name == "partition":
        return pa.repeat(pa.scalar(tp.partition, field.type), batch.num_rows)
    found = batch.column(DECODED[field.name])
    if field.name == HEADERS:
        found = _null_if_none(found)
    return found.cast(field.type)


def _null_if_none(headers: pa.Array) -> pa.Array:
    """A record without headers has null, as with Spark's own connector."""
    import pyarrow as pa
    import pyarrow.compute as pc

    has_some = pc.greater(pc.list_value_length(headers), 0)
    return pc.if_else(has_some, headers, pa.scalar(None, headers.type))
