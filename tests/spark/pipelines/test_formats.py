"""Bytes become columns; what does not fit keeps its bytes and gets a reason."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import (
    NO_VALUE,
    NOT_JSON,
    decode_records,
    good,
    own_columns,
)
from ottla.spark.pipelines.spec import Format
from tests.spark.pipelines.source_rows import records, rows_with_reason


@pytest.mark.spec("APP-12")
def test_json_is_read_by_its_schema_and_the_rest_is_refused(spark: SparkSession) -> None:
    values = (b'{"user": "a", "n": 1}', b"{}", b"oops", b'{"n": "x"}', b"[]", None)
    frame = decode_records(
        records(spark, *values), Format("json", "user STRING, n INT"), "sources.v"
    )
    assert rows_with_reason(frame, "user", "n") == [
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
        frame = decode_records(records(spark, b"hi", None), Format(kind), "sources.v")
        assert rows_with_reason(frame, "value") == [(value, None), (None, None)], (
            "no value: it deletes a key"
        )


@pytest.mark.parametrize(
    ("ddl", "said"),
    [("user STRIN", r"sources\.v\.schema: expected columns"), ("_key STRING", "begin with _")],
)
def test_a_schema_that_is_none_names_its_place(spark: SparkSession, ddl: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        decode_records(records(spark), Format("json", ddl), "sources.v")
