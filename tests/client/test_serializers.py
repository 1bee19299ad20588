"""Values to bytes and back."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from hypothesis import given
from hypothesis import strategies as st

from ottla.client import serializers
from ottla.client.errors import SerializationError, UserError

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "what", "type": "string"}],
}


@given(st.text())
def test_text_comes_back(text: str) -> None:
    assert serializers.to_str(serializers.from_str(text)) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_come_back(number: int) -> None:
    assert serializers.to_int(serializers.from_int(number)) == number


@given(st.integers(-(2**31), 2**31 - 1))
def test_small_whole_numbers_come_back(number: int) -> None:
    assert serializers.to_int(serializers.from_int32(number)) == number


@given(st.floats(allow_nan=False))
def test_numbers_come_back(number: float) -> None:
    assert serializers.to_float(serializers.from_float(number)) == number


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5))
def test_json_comes_back(value: Any) -> None:
    assert serializers.to_json(serializers.from_json(value)) == value


@pytest.mark.spec("PRD-08")
def test_numbers_and_text_are_written_as_java_writes_them() -> None:
    assert serializers.from_int(1) == b"\0\0\0\0\0\0\0\x01"
    assert serializers.from_int32(-2) == b"\xff\xff\xff\xfe"
    assert serializers.from_float(1.0) == b"\x3f\xf0\0\0\0\0\0\0"
    assert serializers.from_str("ä") == b"\xc3\xa4"
    assert serializers.from_json({"a": [1, "ä"]}) == '{"a":[1,"ä"]}'.encode()
    for same in (b"x", bytearray(b"x"), memoryview(b"x")):
        assert serializers.to_bytes(same) == b"x"


@pytest.mark.spec("PRD-08")
@pytest.mark.parametrize(
    ("serialize", "value", "said"),
    [
        (serializers.to_bytes, "text", "expected bytes, got str; set a serializer"),
        (serializers.from_str, b"bytes", "expected str, got bytes"),
        (serializers.from_int, "1", "expected a number, got str"),
        (serializers.from_int, True, "expected a number, got bool"),
        (serializers.from_int, 2**63, "does not fit in 8 bytes"),
        (serializers.from_int32, 2**31, "does not fit in 4 bytes"),
        (serializers.from_float, "1", "expected a number, got str"),
        (serializers.from_json, object(), "cannot encode as JSON"),
        (serializers.to_int, b"123", "expected 8 bytes, got 3"),
        (serializers.to_float, b"123", "expected 8 bytes, got 3"),
        (serializers.to_str, b"\xff", "cannot decode as UTF-8"),
        (serializers.to_json, b"{", "cannot decode as JSON"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(serialize: Any, value: Any, said: str) -> None:
    with pytest.raises(SerializationError) as told:
        serialize(value)
    assert said in str(told.value)


def test_avro_comes_back_and_reads_what_an_older_schema_wrote() -> None:
    avro = serializers.Avro(SCHEMA)
    order = {"id": 5, "what": "tea"}
    data = avro.serialize(order)
    assert avro.deserialize(data) == order
    newer = {
        **SCHEMA,
        "fields": [*SCHEMA["fields"], {"name": "paid", "type": "boolean", "default": False}],
    }
    reader = serializers.Avro(newer, written_with=SCHEMA)
    assert reader.deserialize(data) == {**order, "paid": False}
    with pytest.raises(SerializationError, match="does not match the Avro schema"):
        avro.serialize({"id": "five"})
    with pytest.raises(SerializationError, match="cannot decode with this Avro schema"):
        avro.deserialize(b"\x01")
    with pytest.raises(UserError, match="cannot parse the schema as JSON"):
        serializers.Avro("{")


def test_protobuf_comes_back() -> None:
    protobuf = serializers.Protobuf(StringValue)
    data = protobuf.serialize(StringValue(value="tea"))
    assert protobuf.deserialize(data) == StringValue(value="tea")
    with pytest.raises(SerializationError, match="expected StringValue, got str"):
        protobuf.serialize("tea")
    with pytest.raises(SerializationError, match="cannot decode as StringValue"):
        protobuf.deserialize(b"\xff\xff")
    with pytest.raises(UserError, match="expected a message class"):
        serializers.Protobuf(str)
