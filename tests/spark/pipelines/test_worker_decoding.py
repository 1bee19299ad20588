"""One value that does not decode does not fail the others."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import NO_VALUE, ORIGIN
from ottla.spark.pipelines.decoding.worker_decoding import with_fields
from tests.spark.pipelines.source_rows import records, rows_with_reason

FIELDS = pa.schema([("n", pa.int64())])


def test_what_does_not_decode_or_does_not_fit_is_refused_alone(spark: SparkSession) -> None:
    given = records(spark, b'{"n": 1}', b"?", b'{"n": "text"}', None, b'{"n": 2}', b"{}")
    origin = given.selectExpr(*(f"{column} AS {name}" for name, column in ORIGIN.items()))
    found = rows_with_reason(with_fields(origin, FIELDS, lambda: json.loads, "sources.v"), "n")
    assert [row[0] for row in found] == [1, None, None, None, 2, None]
    assert [row[1] is None for row in found] == [True, False, False, False, True, True]
    assert found[2][1].startswith("the value does not decode: ")
    assert found[3][1] == NO_VALUE


def test_a_field_may_not_be_named_as_the_origin_is(spark: SparkSession) -> None:
    fields = pa.schema([("_key", pa.int64())])
    with pytest.raises(UserError, match=r"sources\.v\.schema: _key: names that begin with _"):
        with_fields(records(spark, b"1"), fields, lambda: json.loads, "sources.v")
