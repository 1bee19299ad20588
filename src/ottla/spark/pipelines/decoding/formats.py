"""Bytes of a topic as columns, and what did not fit.

Owns: the columns that every view of a source has besides its own: where a row came from (`ORIGIN`)
and why it was refused (`REASON`, null for a good one). Never: throws a row away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import Format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

ORIGIN: Final = {
    "_key": "key",
    "_value": "value",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "headers",
}
"""The column of a view, and the one of the source that it is."""
REASON: Final = "_reason"
NO_VALUE: Final = "the record has no value"
NOT_JSON: Final = "the value is not JSON of the schema"
JSON_SCHEMA: Final = "json-schema"
"""Only from a registry: files have Spark's own DDL for JSON."""
_PARSED, _CORRUPT = "_parsed", "_corrupt"


def decode_records(
    records: DataFrame, format: Format, where: str, key: Format | None = None
) -> DataFrame:
    """Records of a source as columns of their own, their origin, and the reason to refuse them."""
    from pyspark.sql import functions as F

    frame = _decode_values(records, format, where)
    if key is not None:
        from ottla.spark.pipelines.decoding import numbered

        frame = numbered.decoded_key(frame, key, where)
    if not format.tombstones:
        return frame
    is_tombstone = F.col(REASON) == NO_VALUE
    return frame.withColumn(REASON, F.when(~is_tombstone, F.col(REASON)))


def _decode_values(records: DataFrame, format: Format, where: str) -> DataFrame:
    from pyspark.sql import functions as F

    origin = records.select([F.col(column).alias(name) for name, column in ORIGIN.items()])
    if format.registry is not None or format.kind == JSON_SCHEMA:
        from ottla.spark.pipelines.decoding import numbered

        return numbered.decode_values(origin, format, where)
    match format.kind:
        case "json":
            return _json(origin, _schema(format.schema, where))
        case "avro":
            from ottla.spark.pipelines.decoding import avro

            return avro.decode_values(origin, format.schema, where)
        case "protobuf":
            from ottla.spark.pipelines.decoding import protobuf

            return protobuf.decode_values(origin, format, where)
        case _:
            value = F.col("_value").cast("string") if format.kind == "string" else F.col("_value")
            fine = F.lit(None).cast("string")  # a record without a value is one: it deletes a key
            return origin.select("*", fine.alias(REASON), value.alias("value"))


def good(frame: DataFrame) -> DataFrame:
    """What a view shows: the rows nobody refused."""
    from pyspark.sql import functions as F

    return frame.where(F.col(REASON).isNull()).drop(REASON)


def own_columns(frame: DataFrame) -> list[str]:
    """The columns that are a user's, not a row's origin."""
    return [name for name in frame.columns if not name.startswith("_")]


def _json(origin: DataFrame, schema: StructType) -> DataFrame:
    from pyspark.sql import functions as F

    for name in schema.fieldNames():
        if name.startswith("_"):
            raise UserError(f"schema: {name}: names that begin with _ are reserved")
    text = F.col("_value").cast("string")
    options = {"columnNameOfCorruptRecord": _CORRUPT}
    parsed = F.from_json(text, schema.add(_CORRUPT, "string"), options)
    frame = origin.withColumn(_PARSED, parsed)
    refused = _refusal_column(F.col(_PARSED).isNull() | F.col(f"{_PARSED}.{_CORRUPT}").isNotNull())
    fields = [F.col(f"{_PARSED}.`{field.name}`") for field in schema if field.name != _CORRUPT]
    return frame.select(*ORIGIN, refused.alias(REASON), *fields)


def _refusal_column(wrong: Column) -> Column:
    from pyspark.sql import functions as F

    missing = F.col("_value").isNull()
    return F.when(missing, F.lit(NO_VALUE)).when(wrong, F.lit(NOT_JSON))


def _schema(ddl: str, where: str) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return cast("StructType", StructType.fromDDL(ddl))
    except PySparkException as mistake:
        first = str(mistake).strip().splitlines()[0]
        raise UserError(
            f"{where}.schema: expected columns and types, as in user STRING, at TIMESTAMP: {first}"
        ) from None
