"""Values in Avro, decoded on the workers by fastavro: Spark's own reader is a jar.

Owns: which Arrow type an Avro type becomes. Where a source names a schema and no registry, a value
may have a registry's five bytes in front (a zero and a number) all the same: they are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.worker_decoding import Decode, Row, with_fields

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

REGISTRY_BYTES: Final = 5
PARSED_SCHEMAS: Final = 256
References: TypeAlias = tuple[tuple[str, str], ...]
"""Schemas that another one refers to, by name."""
AvroSchema: TypeAlias = Any
"""As `json.loads` gives it: a name, a list of them (a union), or a mapping."""


def decode_values(origin: DataFrame, schema: str, where: str) -> DataFrame:
    fields = arrow_schema(schema, where)
    return with_fields(origin, fields, lambda: decoder(schema), where)


def decoder(schema: str) -> Decode:
    """Reads one value; it must be all there is."""
    parsed = parse(schema)

    def decode(value: bytes) -> Row:
        try:
            return cast(Row, read(value, parsed))
        except Exception:
            if value[:1] != b"\0" or len(value) <= REGISTRY_BYTES:
                raise
        return cast(Row, read(value[REGISTRY_BYTES:], parsed))

    return decode


def read(value: bytes, writer: AvroSchema, reader: AvroSchema = None) -> object:
    """One value, which must be all there is, as the reader's schema has it."""
    import fastavro

    source = BytesIO(value)
    found: object = fastavro.schemaless_reader(source, writer, reader)
    if source.tell() != len(value):
        raise ValueError(f"{len(value) - source.tell()} bytes after the value")
    return found


@lru_cache(PARSED_SCHEMAS)
def parse(schema: str, references: References = ()) -> AvroSchema:
    """A schema as fastavro uses it; parsing takes longer than reading a value."""
    import fastavro

    named: dict[str, AvroSchema] = {}
    for _, text in references:
        fastavro.parse_schema(json.loads(text), named_schemas=named)
    return fastavro.parse_schema(json.loads(schema), named_schemas=named)


def encoder(schema: str, references: References = ()) -> Callable[[object], bytes]:
    """Writes one value."""
    import fastavro

    parsed = parse(schema, references)

    def encode(value: object) -> bytes:
        target = BytesIO()
        fastavro.schemaless_writer(target, parsed, value)
        return target.getvalue()

    return encode


def arrow_schema(schema: str, where: str, references: References = ()) -> pa.Schema:
    """The columns of a record's fields."""
    import pyarrow as pa

    found = arrow_type(schema, where, references)
    if not pa.types.is_struct(found):
        raise UserError(f"{where}.schema: expected a record")
    return pa.schema([found.field(index) for index in range(found.num_fields)])


def arrow_type(schema: str, where: str, references: References = ()) -> pa.DataType:
    """The type of a whole value; UserError for what is not Avro, or has no type in Arrow."""
    try:
        import fastavro  # noqa: F401

        parse(schema, references)
    except ImportError:
        raise UserError("format avro needs a package: pip install 'ottla[avro]'") from None
    except Exception as mistake:
        raise UserError(f"{where}.schema: not an Avro schema: {mistake}") from None
    types = _Types(where)
    for _, text in references:
        types.of(json.loads(text))
    return types.of(json.loads(schema))


class _Types:
    """Arrow types of Avro types; named ones are remembered, as they may be named again."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._types_by_name: dict[str, pa.DataType] = {}
        self._namespace = ""

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

        plain_type = {
            "null": pa.null(),
            "boolean": pa.bool_(),
            "int": pa.int32(),
            "long": pa.int64(),
            "float": pa.float32(),
            "double": pa.float64(),
            "bytes": pa.binary(),
            "string": pa.string(),
        }.get(name)
        if plain_type is not None:
            return plain_type
        for full in (name, f"{self._namespace}.{name}"):
            if full in self._types_by_name:
                return self._types_by_name[full]
        raise UserError(f"{self._where}.schema: {name} is recursive; that is not supported")

    def _add_name(self, avro: AvroSchema, made: pa.DataType) -> pa.DataType:
        name = avro["name"]
        self._types_by_name[name] = made
        self._types_by_name[f"{avro.get('namespace', self._namespace)}.{name}"] = made
        return made

    def _record(self, avro: AvroSchema) -> pa.DataType:
        import pyarrow as pa

        outer = self._namespace
        self._namespace = avro.get("namespace", outer)
        made = pa.struct([(one["name"], self.of(one["type"])) for one in avro["fields"]])
        self._namespace = outer
        return self._add_name(avro, made)

    def _complex(self, avro: AvroSchema) -> pa.DataType:
        import pyarrow as pa

        match avro["type"]:
            case "record":
                return self._record(avro)
            case "enum":
                return self._add_name(avro, pa.string())
            case "fixed":
                return self._add_name(avro, pa.binary())
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
        case "local-timestamp-millis" | "local-timestamp-micros":
            return pa.timestamp("us")
        case "decimal":
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        case "uuid":
            return pa.string()
        case _:
            return None
