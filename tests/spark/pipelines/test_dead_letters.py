"""A letter is the record as it was, and headers that say why and from where."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ottla.spark.pipelines.decoding.formats import REASON, decode_records
from ottla.spark.pipelines.dlq.letters import (
    OFFSET_HEADER,
    PARTITION_HEADER,
    PIPELINE_HEADER,
    REASON_HEADER,
    TIMESTAMP_HEADER,
    TOPIC_HEADER,
    header,
    letters,
)
from ottla.spark.pipelines.spec import Format
from tests.spark.pipelines.source_rows import AT, records


def refused(spark: SparkSession, *names: str) -> DataFrame:
    """Two records with these headers, the second of them refused."""
    frame = decode_records(records(spark, b"good", b"bad"), Format(), "sources.v")
    own = F.array(*(header(name, F.lit("1")) for name in names)) if names else F.col("_headers")
    why = F.when(F.col("_value") == F.lit(b"bad"), F.lit("it is bad"))
    return frame.withColumn("_headers", own).withColumn(REASON, why)


def told(frame: DataFrame) -> dict[str, str]:
    ((found,),) = frame.select("headers").collect()
    return {one.key: bytes(one.value).decode() for one in found}


def test_only_what_was_refused_is_a_letter_and_it_is_as_it_was(spark: SparkSession) -> None:
    made = letters(refused(spark), "shop")
    assert made.columns == ["key", "value", "headers"]
    assert [(bytes(row.key), bytes(row.value)) for row in made.collect()] == [(b"k", b"bad")]
    assert told(made) == {
        REASON_HEADER: "it is bad",
        PIPELINE_HEADER: "shop",
        TOPIC_HEADER: "views",
        PARTITION_HEADER: "0",
        OFFSET_HEADER: "1",
        TIMESTAMP_HEADER: str(int(AT.timestamp() * 1000)),
    }


def test_own_headers_stay_and_those_of_a_letter_before_are_told_anew(spark: SparkSession) -> None:
    found = told(letters(refused(spark, "mine", REASON_HEADER), "shop"))
    assert found["mine"] == "1"
    assert found[REASON_HEADER] == "it is bad"
