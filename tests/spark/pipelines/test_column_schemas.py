"""Schemas made of columns: what is written with them is read again, in every format."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding import avro, json_schema, protobuf
from ottla.spark.pipelines.encoding.column_schemas import made_schema, schema_name

KIND = pa.struct(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.map_(pa.string(), pa.int32())),
        ("price", pa.decimal128(12, 2)),
        ("names", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int32()), ("since", pa.timestamp("us", tz="UTC"))])),
        ("day", pa.date32()),
        ("data", pa.binary()),
        ("none", pa.float64()),
    ]
)
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "at": AT,
    "tags": {"k": 1},
    "price": Decimal("12.50"),
    "names": ["x", "y"],
    "place": {"x": 1, "since": AT},
    "day": date(2026, 5, 1),
    "data": b"\x00\xff",
    "none": None,
}


def column(value: object, kind: pa.DataType) -> object:
    """As Arrow has it, which is what Spark gets."""
    return pa.array([value], kind).to_pylist(maps_as_pydicts="strict")[0]


def test_avro_has_every_type_of_a_column() -> None:
    schema = made_schema("avro", KIND, "orders_value")
    assert avro.arrow_type(schema, "v") == KIND
    data = avro.encoder(schema)(ROW)
    assert column(avro.read(data, avro.parse(schema)), KIND) == ROW


def test_json_has_dates_as_text_and_decimals_as_text() -> None:
    schema = made_schema("json-schema", KIND, "orders_value")
    kind = json_schema.arrow_type(schema, "v")
    data = json.loads(json_schema.to_json(ROW))
    json_schema.validator(schema)(data)
    assert column(json_schema.from_json(data, kind), kind) == {**ROW, "price": "12.50"}
    with pytest.raises(ValueError, match=r"^tags: "):
        json_schema.validator(schema)({**data, "tags": {"k": "many"}})


def test_protobuf_has_messages_maps_and_fields_that_may_be_missing() -> None:
    schema = made_schema("protobuf", KIND, "orders_value")
    descriptors = protobuf.registered_descriptors(schema, ())
    name = protobuf.message_name(descriptors)
    assert name == "orders_value"
    assert protobuf.message_indexes(descriptors, name) == (0,)
    data = protobuf.encoder(descriptors, name)(json.loads(json_schema.to_json(ROW)))
    fields = protobuf.arrow_schema(descriptors, name, "v")
    kind = pa.struct(list(fields))
    read = column(protobuf.decoder(descriptors, name)(data), kind)
    assert read == {**ROW, "price": "12.50", "day": "2026-05-01"}


def test_a_plain_key_has_a_plain_schema_and_protobuf_has_none() -> None:
    assert made_schema("avro", pa.string(), "k") == '"string"'
    with pytest.raises(UserError, match="messages only"):
        made_schema("protobuf", pa.string(), "k")
    with pytest.raises(UserError, match="has no counterpart"):
        made_schema("avro", pa.struct([("t", pa.time64("us"))]), "v")


def test_the_name_of_a_record_is_made_of_its_subject() -> None:
    assert schema_name("big-orders.v2-value") == "big_orders_v2_value"
    assert schema_name("2fast-value") == "_2fast_value"
