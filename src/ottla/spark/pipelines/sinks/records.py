"""Rows of a view as the records of a topic, and the columns that a sink names.

Owns: how the parts of a record are made of a row's columns, and the errors about both. Never:
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import REASON, own_columns
from ottla.spark.pipelines.dlq.letters import header
from ottla.spark.pipelines.encoding.encoded_columns import encode_column
from ottla.spark.pipelines.spec import Encoding, FilesTarget, Sink, TableTarget, TopicTarget

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

JSON: Final = "json"


def topic_records(sink: Sink, frame: DataFrame) -> DataFrame:
    """The rows of a view as the records that a sink to a topic writes."""
    assert isinstance(sink.target, TopicTarget)
    with analysed(sink):
        return as_records(frame, record_columns(sink.target, frame))


def check_columns(sink: Sink, frame: DataFrame) -> None:
    """UserError for a column that the view does not have, before anything runs."""
    target = sink.target
    columns_by_key: dict[str, tuple[str, ...]] = {}
    if isinstance(target, FilesTarget | TableTarget):
        columns_by_key["partition_by"] = target.partition_by
    if isinstance(target, TableTarget):
        columns_by_key["upsert_by"] = target.keys
        columns_by_key["order_by"] = () if target.order_by is None else (target.order_by,)
        if target.delete_when is not None:
            with analysed(sink, "delete_when"):
                frame.where(target.delete_when)
    for key, columns in columns_by_key.items():
        for column in columns:
            if column not in frame.columns:
                listing = ", ".join(frame.columns)
                raise UserError(
                    f"sink {sink.name}: {key}: {sink.source} has no column {column!r}; it has "
                    f"{listing}"
                )


def options_of(target: TopicTarget) -> dict[str, str]:
    options = {"kafka.bootstrap.servers": target.bootstrap, **target.options}
    return options if target.topic is None else {"topic": target.topic, **options}


def as_records(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def record_columns(target: TopicTarget, frame: DataFrame) -> dict[str, Column]:
    """A view's rows as the sink's columns."""
    from pyspark.sql import functions as F

    columns: dict[str, Column] = {"value": _bytes(target.value, frame)}
    if target.key is not None:
        columns["key"] = _bytes(target.key, frame)
    if isinstance(target.headers, str):
        columns["headers"] = F.expr(target.headers)
    elif target.headers:
        headers = (header(name, F.expr(text)) for name, text in target.headers.items())
        columns["headers"] = F.array(*headers)
    if target.topic_of is not None:
        columns["topic"] = F.expr(target.topic_of).cast("string")
    if target.partition is not None:
        columns["partition"] = F.expr(target.partition).cast("int")
    return columns


def _bytes(expression: str | Encoding, frame: DataFrame) -> Column:
    """What is binary stays as it is; anything else is written as text, or as its encoding says."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType

    row = F.struct(*own_columns(frame))
    if isinstance(expression, Encoding):
        column = F.expr(expression.of) if expression.of else row
        if REASON in frame.columns:  # refused rows need not fit a schema
            column = F.when(F.col(REASON).isNull(), column)
        return encode_column(expression, frame, column)
    if expression == JSON:
        return F.to_json(row).cast("binary")
    column = F.expr(expression)
    is_binary = isinstance(frame.select(column).schema[0].dataType, BinaryType)
    return column if is_binary else column.cast("string").cast("binary")


@contextmanager
def analysed(sink: Sink, key: str = "topic") -> Iterator[None]:
    """Spark's complaint about a column, as one line that says whose it is."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as mistake:
        first = str(mistake).strip().splitlines()[0]
        raise UserError(f"sink {sink.name}: {key}: {first}") from None
