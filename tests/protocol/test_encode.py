"""Fields become exactly the bytes that kio writes, in every version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.encode import ms, uvarint, writer_of
from ottla.protocol.schema import Entity, MessageKind, message
from ottla.protocol.wire import Call, encode_part
from tests.protocol.samples import (
    ALL_KEYS,
    any_fields,
    filled,
    kio_bytes,
    messages,
    served_versions,
    sparse,
)


def encoded(entity: Entity, fields: dict[str, Any]) -> bytes:
    out = bytearray()
    writer_of(entity)(fields, out)
    return bytes(out)


@pytest.mark.spec("REC-41", "REC-42", "REC-43", "REC-44", "WIRE-05")
@pytest.mark.parametrize("key", ALL_KEYS)
def test_every_message_is_written_as_kio_writes_it(key: int) -> None:
    for _, _, entity in messages(key):
        for fields in (filled(entity), filled(entity, count=0), sparse(entity)):
            assert encoded(entity, fields) == kio_bytes(entity, fields), entity


@given(st.data())
def test_any_values_are_written_as_kio_writes_them(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(ALL_KEYS))
    version = data.draw(st.sampled_from(served_versions(key)))
    entity = message(key, version, data.draw(st.sampled_from(MessageKind)))
    fields = data.draw(any_fields(entity))
    assert encoded(entity, fields) == kio_bytes(entity, fields)


def test_fields_that_a_version_lacks_are_dropped() -> None:
    entity = message(12, 0, MessageKind.RESPONSE)
    fields = {"error_code": 27, "throttle_time": 5, "from_the_future": 1}
    assert encoded(entity, fields) == b"\x00\x1b"


@pytest.mark.spec("WIRE-14")
def test_throttle_time_is_zero_unless_a_handler_says_otherwise() -> None:
    entity = message(12, 1, MessageKind.RESPONSE)
    assert encoded(entity, {"error_code": 0}) == bytes(6)
    assert encoded(entity, {"error_code": 0, "throttle_time": 3}) == b"\0\0\0\3\0\0"


@pytest.mark.parametrize("absent", ["error_code", "leader", "members"])
def test_a_missing_field_without_a_default_is_named(absent: str) -> None:
    entity = message(11, 2, MessageKind.RESPONSE)
    fields = filled(entity)
    del fields[absent]
    with pytest.raises(KeyError, match=absent):
        encoded(entity, fields)


def test_a_missing_flag_is_not_taken_for_true() -> None:
    entity = message(26, 0, MessageKind.REQUEST)
    fields = filled(entity)
    del fields["committed"]
    with pytest.raises(KeyError, match="committed"):
        encoded(entity, fields)


def test_a_value_that_does_not_fit_is_named() -> None:
    entity = message(12, 1, MessageKind.RESPONSE)
    with pytest.raises(ValueError, match="error_code"):
        encoded(entity, {"error_code": 40_000})
    with pytest.raises(ValueError, match="leader"):
        encoded(
            message(11, 2, MessageKind.RESPONSE),
            filled(message(11, 2, MessageKind.RESPONSE)) | {"leader": 1},
        )


def test_a_tagged_field_at_its_default_is_left_out() -> None:
    entity = message(1, 12, MessageKind.RESPONSE)
    fields = filled(entity, count=1)
    partition = fields["responses"][0]["partitions"][0]
    full = len(encoded(entity, fields))
    partition["current_leader"] = {"leader_id": -1, "leader_epoch": -1}
    partition["diverging_epoch"] = None
    assert len(encoded(entity, fields)) == full - 11 - 15


@given(st.integers(0, 2**31 - 1))
def test_uvarints_are_seven_bits_a_byte(value: int) -> None:
    data = uvarint(value)
    assert sum((byte & 0x7F) << 7 * at for at, byte in enumerate(data)) == value
    assert [byte > 0x7F for byte in data] == [True] * (len(data) - 1) + [False]


def test_milliseconds_are_read_from_whatever_holds_them() -> None:
    assert ms(timedelta(seconds=1.5)) == 1_500
    assert ms(timedelta(milliseconds=-1)) == -1
    assert ms(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1_000
    assert ms(7) == 7
    assert ms(None) == -1


@pytest.mark.parametrize("version", served_versions(3))
def test_a_part_that_was_encoded_before_is_taken_as_it_is(version: int) -> None:
    entity = message(3, version, MessageKind.RESPONSE)
    fields = filled(entity, count=3)
    call = Call(3, version, 1, None, 0)
    parts = [encode_part(call, "topics", topic) for topic in fields["topics"]]
    mixed = {**fields, "topics": [parts[0], fields["topics"][1], parts[2]]}
    assert encoded(entity, mixed) == kio_bytes(entity, fields)
