"""Rows that were refused, as records of a dead-letter topic.

Owns: the headers that say why and from where; `replay` reads them again. Never: changes a key, a
value or a header that the record came with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.spark.pipelines.decoding.formats import REASON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PREFIX: Final = "ottla.dead."
REASON_HEADER: Final = f"{PREFIX}reason"
PIPELINE_HEADER: Final = f"{PREFIX}pipeline"
TOPIC_HEADER: Final = f"{PREFIX}topic"
PARTITION_HEADER: Final = f"{PREFIX}partition"
OFFSET_HEADER: Final = f"{PREFIX}offset"
TIMESTAMP_HEADER: Final = f"{PREFIX}timestamp"


def letters(judged: DataFrame, pipeline: str) -> DataFrame:
    """Refused rows as the sink writes them: key, value and headers."""
    from pyspark.sql import functions as F

    columns = (column.alias(name) for name, column in letter(pipeline).items())
    return judged.where(F.col(REASON).isNotNull()).select(*columns)


def letter(pipeline: str) -> dict[str, Column]:
    """The columns of a letter, over those of the row that was refused."""
    from pyspark.sql import functions as F

    origin = {
        REASON_HEADER: F.col(REASON),
        PIPELINE_HEADER: F.lit(pipeline),
        TOPIC_HEADER: F.col("_topic"),
        PARTITION_HEADER: F.col("_partition").cast("string"),
        OFFSET_HEADER: F.col("_offset").cast("string"),
        TIMESTAMP_HEADER: F.unix_millis("_timestamp").cast("string"),
    }
    nothing = F.array().cast("array<struct<key: string, value: binary>>")
    own = F.filter(F.coalesce("_headers", nothing), lambda one: ~one["key"].startswith(PREFIX))
    told = F.array(*(header(name, value) for name, value in origin.items()))
    return {"key": F.col("_key"), "value": F.col("_value"), "headers": F.concat(own, told)}


def header(name: str, value: Column) -> Column:
    """One header as the sink wants it."""
    from pyspark.sql import functions as F

    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
