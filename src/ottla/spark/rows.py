"""What a row is: the columns a source gives, and those a sink takes.

Owns: the schema of Spark's Kafka connector in Spark's words and in Arrow's, the check of what a
query wants to write, and the last step from decoded columns to the Arrow batch Spark expects.
Never: talks to a broker.

pyspark and pyarrow are imported where they are used: options are checked, and offsets planned,
without either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

T = TypeVar("T")
MOST_KEPT_ROWS: Final = 1 << 18

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


def written_columns(schema: StructType, topic: str | None) -> SinkColumns:
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


def shape(batch: pa.RecordBatch, tp: TopicPartition, into: pa.Schema) -> pa.RecordBatch:
    """The columns of a decoded batch as Spark wants them, names, order and types."""
    import pyarrow as pa

    arrays = [_column(batch, tp, field) for field in into]
    return pa.RecordBatch.from_arrays(arrays, schema=into)


def _column(batch: pa.RecordBatch, tp: TopicPartition, field: pa.Field) -> pa.Array:
    if field.name == "topic":
        return _repeat(tp.topic, batch.num_rows).cast(field.type)
    if field.name == "partition":
        return _numbers(tp.partition, batch.num_rows).cast(field.type)
    found = batch.column(DECODED[field.name])
    if field.name == HEADERS:
        found = _null_if_none(found)
    return found.cast(field.type)


def _repeat(text: str, count: int) -> pa.Array:
    """The same text in every row."""
    return _column_of(_texts, text, count)


def _numbers(number: int, count: int) -> pa.Array:
    """The same number in every row."""
    return _column_of(_int32s, number, count)


def _column_of(make: Callable[[T, int], pa.Array], value: T, count: int) -> pa.Array:
    """Part of a column that was made before: new memory takes longer than decoding."""
    if count > MOST_KEPT_ROWS:
        return make(value, count)
    return _cached_column(make, value, 1 << max(count - 1, 0).bit_length()).slice(0, count)


@lru_cache(8)
def _cached_column(make: Callable[[T, int], pa.Array], value: T, count: int) -> pa.Array:
    return make(value, count)


# Made of their bytes: `pa.scalar` and `pa.array` import pandas, half a second of CPU time in each
# worker, to ask whether what they are given is one of its objects.


def _texts(text: str, count: int) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    data = text.encode()
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(data))
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(data * count)]
    )


def _int32s(number: int, count: int) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    values = np.full(count, number, np.int32)
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(values)])


def _null_if_none(headers: pa.Array) -> pa.Array:
    """A record without headers has null, as with Spark's own connector."""
    import pyarrow as pa
    import pyarrow.compute as pc

    has_some = pc.greater(pc.list_value_length(headers), 0)
    return pc.if_else(has_some, headers, pa.nulls(len(headers), headers.type))
