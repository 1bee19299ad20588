"""Bytes become columns; what does not fit keeps its bytes and gets a reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pyspark.sql import DataFrame, SparkSession

from ottla.model.errors import UserError
from ottla.spark import rows
from ottla.spark.pipelines.avro import arrow_schema
from ottla.spark.pipelines.formats import NO_VALUE, NOT_JSON, REASON, decoded, good, own_columns
from ottla.spark.pipelines.spec import Format

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)
AVRO = {
    "type": "record",
    "name": "View",
    "fields": [
        {"name": "user", "type": ["null", "string"]},
        {"name": "pages", "type": {"type": "array", "items": "int"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
    ],
}


def records(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """Records as the source gives them."""
    schema = rows.schema((*rows.COLUMNS, rows.HEADERS))
    made = [
        (b"k", value, "views", 0, at, AT.replace(tzinfo=None), 0, None)
        for at, value in enumerate(values)
    ]
    return spark.createDataFrame(made, schema)


def told(frame: DataFrame, *columns: str) -> list[Any]:
    return [tuple(row) for row in frame.select(*columns, REASON).orderBy("_offset").collect()]


@pytest.mark.spec("APP-12")
def test_json_is_read_by_its_schema_and_the_rest_is_refused(spark: SparkSession) -> None:
    values = (b'{"user": "a", "n": 1}', b"{}", b"oops", b'{"n": "x"}', b"[]", None)
    frame = decoded(records(spark, *values), Format("json", "user STRING, n INT"), "sources.v")
    assert told(frame, "user", "n") == [
        ("a", 1, None),
        (None, None, None),
        (None, None, NOT_JSON),
        (None, None, NOT_JSON),
        (None, None, NOT_JSON),
        (None, None, NO_VALUE),
    ]
    assert good(frame).count() == 2
    assert own_columns(good(frame)) == ["user", "n"]


def test_text_and_bytes_need_no_schema(spark: SparkSession) -> None:
    for kind, value in (("string", "hi"), ("binary", b"hi")):
        frame = decoded(records(spark, b"hi", None), Format(kind), "sources.v")
        assert told(frame, "value") == [(value, None), (None, None)], "no value: it deletes a key"


@pytest.mark.spec("APP-13")
def test_avro_is_read_on_the_workers_with_or_without_a_registrys_number(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = {"user": "a", "pages": [1, 2], "at": AT, "kind": "B"}
    path = tmp_path / "value"
    with path.open("wb") as file:
        fastavro.schemaless_writer(file, fastavro.parse_schema(AVRO), row)
    value = path.read_bytes()
    values = (value, b"\0\0\0\0\x07" + value, value + b"!", b"\xff", None)
    frame = decoded(records(spark, *values), Format("avro", json.dumps(AVRO)), "sources.v")
    found = told(frame, "user", "pages", "kind", "at")
    seen = ("a", [1, 2], "B", AT.replace(tzinfo=None), None)
    assert found[:2] == [seen, seen]
    assert [row[-1].startswith("the value does not decode") for row in found[2:4]] == [True, True]
    assert found[4][-1] == NO_VALUE


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "not an Avro schema"),
        ('"string"', "expected a record"),
        ({"name": "a", "type": ["int", "string"]}, "a union"),
    ],
)
def test_a_schema_of_avro_that_has_no_columns_is_said_so(schema: Any, said: str) -> None:
    if isinstance(schema, dict):
        schema = json.dumps({"type": "record", "name": "R", "fields": [schema]})
    with pytest.raises(UserError, match=said):
        arrow_schema(schema, "sources.v")


def descriptors() -> bytes:
    """message View { string user = 1; repeated int64 pages = 2; Kind kind = 3; }"""
    found = descriptor_pb2.FileDescriptorSet()
    file = found.file.add(name="view.proto", package="shop", syntax="proto3")
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="SOME", number=1)
    view = file.message_type.add(name="View")
    view.field.add(name="user", number=1, type=9, label=1)
    view.field.add(name="pages", number=2, type=3, label=3)
    view.field.add(name="kind", number=3, type=14, label=1, type_name=".shop.Kind")
    return bytes(found.SerializeToString())


def test_protobuf_is_read_from_a_file_of_descriptors(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "view.desc"
    path.write_bytes(descriptors())
    pool = descriptor_pool.DescriptorPool()
    parsed = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
    pool.Add(parsed.file[0])
    view: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.View"))
    value = view(user="a", pages=[1, 2], kind=1).SerializeToString()
    format = Format("protobuf", str(path), "shop.View")
    frame = decoded(records(spark, value, b"\xff\xff", None), format, "sources.v")
    found = told(frame, "user", "pages", "kind")
    assert found[0] == ("a", [1, 2], "SOME", None)
    assert found[1][-1].startswith("the value does not decode")
    assert found[2][-1] == NO_VALUE
    with pytest.raises(UserError, match=r"message shop\.Nothing"):
        decoded(records(spark), Format("protobuf", str(path), "shop.Nothing"), "sources.v")


@pytest.mark.parametrize(
    ("ddl", "said"),
    [("user STRIN", r"sources\.v\.schema: expected columns"), ("_key STRING", "begin with _")],
)
def test_a_schema_that_is_none_names_its_place(spark: SparkSession, ddl: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        decoded(records(spark), Format("json", ddl), "sources.v")
