"""Values decoded one by one on the workers, a batch of columns at a time.

Owns: how a decoder of single values becomes columns beside a row's origin. Never: knows a format;
`avro` and `protobuf` bring a decoder and the Arrow type of what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import NO_VALUE, ORIGIN, REASON

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Row: TypeAlias = dict[str, Any]
"""The fields of one value, by name."""
Decode: TypeAlias = Callable[[bytes], Row]
"""A value's fields; raises whatever it likes for bytes that are none, and ConnectionError where
that cannot be known now."""
MakeDecode: TypeAlias = Callable[[], Decode]
"""Called on a worker: a decoder itself may not be able to travel."""
KEY: Final = "key"
"""The column of a decoded key."""


def with_fields(origin: DataFrame, fields: pa.Schema, make: MakeDecode, where: str) -> DataFrame:
    """The origin's rows with the fields of their values, and the reason where there are none."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType, StructField, StructType

    for name in fields.names:
        if name.startswith("_"):
            raise UserError(f"{where}.schema: {name}: names that begin with _ are reserved")
    reason = StructField(REASON, StringType())
    schema = StructType([*origin.schema.fields, reason, *from_arrow_schema(fields).fields])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode = make()
        for batch in batches:
            yield _decode_batch(batch, fields, decode)

    return origin.select(*ORIGIN).mapInArrow(run, schema)


def with_key(frame: DataFrame, kind: pa.DataType, make: MakeDecode, where: str) -> DataFrame:
    """The rows of a view with the column `key`; rows whose key does not decode are refused."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    if KEY in frame.columns:
        raise UserError(f"{where}.key: the values have a field {KEY}, too; decode one of them")
    fields = pa.schema([(KEY, kind)])
    schema = StructType([*frame.schema.fields, *from_arrow_schema(fields).fields])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decode = make()
        for batch in batches:
            yield _with_key(batch, fields, decode)

    return frame.mapInArrow(run, schema)


class Noun(NamedTuple):
    """What is decoded, and the reason to refuse a record without it."""

    name: str
    missing: str | None = None


VALUE: Final = Noun("value", NO_VALUE)
OF_KEY: Final = Noun("key")
"""A record without a key is fine."""


def _decode_batch(batch: pa.RecordBatch, fields: pa.Schema, decode: Decode) -> pa.RecordBatch:
    import pyarrow as pa

    columns, reasons = _columns(batch.column("_value"), fields, decode, VALUE)
    names = [*batch.schema.names, REASON, *fields.names]
    arrays = [*batch.columns, pa.array(reasons, pa.string()), *columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _with_key(batch: pa.RecordBatch, fields: pa.Schema, decode: Decode) -> pa.RecordBatch:
    import pyarrow as pa

    columns, reasons = _columns(batch.column("_key"), fields, decode, OF_KEY)
    before = batch.column(REASON).to_pylist()
    told = [old if old is not None else new for old, new in zip(before, reasons, strict=True)]
    at = batch.schema.get_field_index(REASON)
    kept = [*batch.columns]
    kept[at] = pa.array(told, pa.string())
    return pa.RecordBatch.from_arrays([*kept, *columns], names=[*batch.schema.names, *fields.names])


def _columns(
    values: pa.Array, fields: pa.Schema, decode: Decode, noun: Noun
) -> tuple[list[pa.Array], list[str | None]]:
    """The columns of values, and for each the reason why it has none."""
    rows: list[Row] = []
    reasons: list[str | None] = []
    for value in values.to_pylist():
        row, reason = _decode_value(value, decode, noun)
        rows.append(row)
        reasons.append(reason)
    try:
        return [_array(rows, field) for field in fields], reasons
    except Exception:
        _refuse_unfit(rows, reasons, fields, noun)
        return [_array(rows, field) for field in fields], reasons


def _array(rows: list[Row], field: pa.Field) -> pa.Array:
    import pyarrow as pa

    return pa.array([row.get(field.name) for row in rows], field.type)


def _refuse_unfit(
    rows: list[Row], reasons: list[str | None], fields: pa.Schema, noun: Noun
) -> None:
    """What Arrow does not take must not fail the other rows."""
    for at, row in enumerate(rows):
        try:
            for field in fields:
                _array([row], field)
        except Exception as fault:
            rows[at], reasons[at] = {}, _reason(noun, fault)


def _decode_value(value: bytes | None, decode: Decode, noun: Noun) -> tuple[Row, str | None]:
    if value is None:
        return {}, noun.missing
    try:
        return decode(value), None
    except (ConnectionError, UserError):  # not the value's fault
        raise
    except Exception as fault:
        return {}, _reason(noun, fault)


def _reason(noun: Noun, fault: Exception) -> str:
    return f"the {noun.name} does not decode: {fault or type(fault).__name__}"
