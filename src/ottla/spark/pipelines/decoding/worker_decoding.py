"""Values decoded one by one on the workers, a batch of columns at a time.

Owns: how a decoder of single values becomes columns beside a row's origin. Never: knows a format;
`avro` and `protobuf` bring a decoder and the Arrow type of what it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.formats import NO_VALUE, ORIGIN, REASON

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Row: TypeAlias = dict[str, Any]
"""The fields of one value, by name."""
Decode: TypeAlias = Callable[[bytes], Row]
"""A value's fields; raises whatever it likes for bytes that are none."""
MakeDecode: TypeAlias = Callable[[], Decode]
"""Called on a worker: a decoder itself may not be able to travel."""


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
            yield _decoded(batch, fields, decode)

    return origin.select(*ORIGIN).mapInArrow(run, schema)


def _decoded(batch: pa.RecordBatch, fields: pa.Schema, decode: Decode) -> pa.RecordBatch:
    import pyarrow as pa

    rows: list[Row] = []
    reasons: list[str | None] = []
    for value in batch.column("_value"):
        row, reason = _decode_value(value.as_py(), fields, decode)
        rows.append(row)
        reasons.append(reason)
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in fields]
    names = [*batch.schema.names, REASON, *fields.names]
    told = pa.array(reasons, pa.string())
    return pa.RecordBatch.from_arrays([*batch.columns, told, *columns], names=names)


def _decode_value(value: bytes | None, fields: pa.Schema, decode: Decode) -> tuple[Row, str | None]:
    import pyarrow as pa

    if value is None:
        return {}, NO_VALUE
    try:
        row = decode(value)
        for field in fields:  # what Arrow would refuse must not fail the other rows
            pa.array([row.get(field.name)], field.type)
    except Exception as fault:
        return {}, f"the value does not decode: {fault or type(fault).__name__}"
    return row, None
