"""Avro values become columns on the workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.avro import arrow_schema
from ottla.spark.pipelines.decoding.formats import NO_VALUE, decode_records
from ottla.spark.pipelines.spec import Format
from tests.spark.pipelines.source_rows import AT, records, rows_with_reason

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
    frame = decode_records(records(spark, *values), Format("avro", json.dumps(AVRO)), "sources.v")
    found = rows_with_reason(frame, "user", "pages", "kind", "at")
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
