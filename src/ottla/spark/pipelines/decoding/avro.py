"""Values in Avro, decoded on the workers by fastavro: Spark's own reader is a jar.

Owns: which Arrow type an Avro type becomes. A value may have the five bytes of a schema registry
in front (a zero and a number): they are skipped, and the schema of the file is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.worker_decoding import Decode, Row, with_fields

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REGISTRY_BYTES: Final = 5
AvroSchema: TypeAlias = Any
"""As `json.loads` gives it: a name, a list of them (a union), or a mapping."""


def decoded(origin: DataFrame, schema: str, where: str) -> DataFrame:
    fields = arrow_schema(schema, where)
    return with_fields(origin, fields, lambda: decoder(schema), where)


def decoder(schema: str) -> Decode:
    """Reads one value; it must be all there is."""
    import fastavro

    parsed = fastavro.parse_schema(json.loads(schema))

    def decode(value: bytes) -> Row:
        try:
            return _read(value)
        except Exception:
            if value[:1] != b"\0" or len(value) <= REGISTRY_BYTES:
                raise
        return _read(value[REGISTRY_BYTES:])

    def _read(value: bytes) -> Row:
        source = BytesIO(value)
        row = fastavro.schemaless_reader(source, parsed, None)
        if source.tell() != len(value):
            raise ValueError(f"{len(value) - source.tell()} bytes after the value")
        return cast(Row, row)

    return decode


def encoder(schema: str) -> Callable[[Row], bytes]:
    """Writes one value, for the tests of a pipeline."""
    import fastavro

    parsed = fastavro.parse_schema(json.loads(schema))

    def encode(row: Row) -> bytes:
        target = BytesIO()
        fastavro.schemaless_writer(target, parsed, row)
        return target.getvalue()

    return encode


def arrow_schema(schema: str, where: str) -> pa.Schema:
    """The columns of a record's fields."""
    import pyarrow as pa

    try:
        import fastavro

        words = json.loads(schema)
        fastavro.parse_schema(words)
    except ImportError:
        raise UserError("format avro needs a package: pip install 'ottla[avro]'") from None
    except Exception as mistake:
        raise UserError(f"{where}.schema: not an Avro schema: {mistake}") from None
    if not isinstance(words, dict) or words.get("type") != "record":
        raise UserError(f"{where}.schema: expected a record")
    types = _Types(where)
    return pa.schema([(field["name"], types.of(field["type"])) for field in words["fields"]])


class _Types:
    """Arrow types of Avro types; named ones are remembered, as they may be named again."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._named: dict[str, pa.DataType] = {}

    def of(self, avro: AvroSchema) -> pa.DataType:
        if isinstance(avro, list):
            return self._union(avro)
        if isinstance(avro, str):
            return self._plain(avro)
        logical = _logical(avro)
        if logical is not None:
            return logical
        return self._complex(avro)

    def _union(self, avro: list[AvroSchema]) -> pa.DataType:
        types = [one for one in avro if one != "null"]
        if len(types) != 1:
            raise UserError(f"{self._where}.schema: a union of {avro}: only one type or null")
        return self.of(types[0])

    def _plain(self, name: str) -> pa.DataType:
        import pyarrow as pa

        found = {
            "null": pa.null(),
            "boolean": pa.bool_(),
            "int": pa.int32(),
            "long": pa.int64(),
            "float": pa.float32(),
            "double": pa.float64(),
            "bytes": pa.binary(),
            "string": pa.string(),
        }.get(name)
        return self._named[name] if found is None else found

    def _complex(self, avro: AvroSchema) -> pa.DataType:
        import pyarrow as pa

        match avro["type"]:
            case "record":
                made = pa.struct([(one["name"], self.of(one["type"])) for one in avro["fields"]])
                self._named[avro["name"]] = made
                return made
            case "enum":
                self._named[avro["name"]] = pa.string()
                return pa.string()
            case "fixed":
                self._named[avro["name"]] = pa.binary()
                return pa.binary()
            case "array":
                return pa.list_(self.of(avro["items"]))
            case "map":
                return pa.map_(pa.string(), self.of(avro["values"]))
            case inner:
                return self.of(inner)


def _logical(avro: AvroSchema) -> pa.DataType | None:
    import pyarrow as pa

    match avro.get("logicalType"):
        case "date":
            return pa.date32()
        case "timestamp-millis" | "timestamp-micros":
            return pa.timestamp("us", tz="UTC")
        case "decimal":
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        case "uuid":
            return pa.string()
        case _:
            return None
