"""Rows as the source gives them, and what decoding made of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ottla.spark import rows
from ottla.spark.pipelines.decoding.formats import (
    REASON,
)

AT = datetime(2024, 5, 1, 12, tzinfo=UTC)


def records(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """Records as the source gives them."""
    schema = rows.schema((*rows.COLUMNS, rows.HEADERS))
    made = [
        (b"k", value, "views", 0, at, AT.replace(tzinfo=None), 0, None)
        for at, value in enumerate(values)
    ]
    return spark.createDataFrame(made, schema)


def rows_with_reason(frame: DataFrame, *columns: str) -> list[Any]:
    return [tuple(row) for row in frame.select(*columns, REASON).orderBy("_offset").collect()]
