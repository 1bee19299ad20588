"""What is read, and what may be written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition as TP
from ottla.spark.rows import COLUMNS, HEADERS, SinkColumns, schema, shape, written_columns

HEADERS_TYPE = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
READ = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", HEADERS_TYPE),
    ]
)


def test_the_schema_is_that_of_sparks_own_connector() -> None:
    assert schema(COLUMNS) == (
        "key binary, value binary, topic string, partition int, offset long, "
        "timestamp timestamp, timestampType int"
    )
    assert READ.fieldNames() == [*COLUMNS, HEADERS]


def test_only_the_columns_asked_for_are_in_the_schema_in_that_order() -> None:
    assert schema(("offset", "value")) == "offset long, value binary"


def test_decoded_columns_become_exactly_what_spark_expects() -> None:
    headers = pa.list_(
        pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
    )
    decoded = pa.record_batch(
        {
            "key": pa.array([b"k", None]),
            "value": pa.array([b"v", b""]),
            "offset": pa.array([7, 8]),
            "timestamp": pa.array([1_000, 2_000], pa.timestamp("ms")),
            "timestamp_type": pa.array([0, 1], pa.int8()),
            "headers": pa.array([[{"key": "h", "value": b"x"}], []], headers),
        }
    )
    into = to_arrow_schema(READ, timezone="UTC")
    made = shape(decoded, TP("t", 3), into)
    assert made.schema.equals(into)
    assert made.to_pylist()[0]["timestamp"].timestamp() == 1.0
    assert [row["partition"] for row in made.to_pylist()] == [3, 3]
    assert made.column("topic").to_pylist() == ["t", "t"]
    assert made.column("headers").to_pylist() == [[{"key": "h", "value": b"x"}], None]


def test_a_sink_finds_its_columns_wherever_they_are() -> None:
    found = StructType(
        [
            StructField("other", LongType()),
            StructField("value", StringType()),
            StructField("topic", StringType()),
            StructField("key", BinaryType()),
            StructField("headers", HEADERS_TYPE),
            StructField("partition", IntegerType()),
            StructField("timestamp", TimestampType()),
        ]
    )
    assert written_columns(found, None) == SinkColumns(1, 3, 2, 4, 5, 6)
    assert written_columns(found, "t").topic is None  # the option comes before the column


def test_a_query_without_a_value_cannot_be_written() -> None:
    with pytest.raises(UserError, match="no column named value"):
        written_columns(StructType([StructField("key", StringType())]), "t")


def test_a_query_without_a_topic_needs_the_option() -> None:
    with pytest.raises(UserError, match="topic"):
        written_columns(StructType([StructField("value", StringType())]), None)


@pytest.mark.parametrize(
    ("column", "type", "shown"),
    [
        ("value", LongType(), "bigint"),
        ("key", IntegerType(), "int"),
        ("topic", BinaryType(), "binary"),
        ("partition", LongType(), "bigint"),
        ("headers", StringType(), "string"),
        ("timestamp", LongType(), "bigint"),
    ],
)
def test_a_column_of_a_wrong_type_is_refused_by_name(
    column: str, type: LongType, shown: str
) -> None:
    fields = {"value": StringType(), "topic": StringType(), column: type}
    given = StructType([StructField(name, each) for name, each in fields.items()])
    with pytest.raises(UserError, match=f"column {column} is of type {shown}"):
        written_columns(given, None)
