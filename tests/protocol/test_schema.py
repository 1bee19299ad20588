"""Messages are found by key and version, and lack no field that another version has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import wire
from ottla.protocol.schema import (
    REQUIRED,
    MessageKind,
    UnknownApi,
    fields_of,
    message,
    versions,
)
from tests.protocol.samples import ALL_KEYS, SERVED, filled


@pytest.mark.spec("WIRE-05", "WIRE-07")
def test_every_version_that_is_served_has_its_messages() -> None:
    for key, (first, last) in SERVED.items():
        assert set(range(first, last + 1)) <= set(versions(key)), key


@pytest.mark.parametrize(("key", "version"), [(-1, 0), (200, 0), (3, 99), (0, 2), (4, 8)])
def test_an_unknown_message_is_said_to_be_unknown(key: int, version: int) -> None:
    with pytest.raises(UnknownApi):
        message(key, version, MessageKind.REQUEST)


def test_fields_say_what_kio_declares() -> None:
    by_name = {field.name: field for field in fields_of(message(1, 13, MessageKind.REQUEST))}
    assert by_name["cluster_id"].tag == 0
    assert by_name["cluster_id"].nullable
    assert by_name["topics"].is_array
    assert by_name["topics"].struct is not None
    assert by_name["max_wait"].wire_type == "timedelta_i32"
    assert by_name["max_wait"].default is REQUIRED


def read(key: int, version: int) -> object:
    entity = message(key, version, MessageKind.REQUEST)
    frame = memoryview(wire.encode_request(key, version, 1, None, filled(entity)))[4:]
    return wire.decode(wire.parse_call(frame), frame)


def test_a_field_that_came_later_reads_as_its_default() -> None:
    request = read(11, 0)
    assert request.group_instance_id is None  # type: ignore[attr-defined]
    assert request.reason is None  # type: ignore[attr-defined]


def test_a_field_that_went_away_reads_as_its_default() -> None:
    assert read(9, 8).group_id == ""  # type: ignore[attr-defined]
    assert read(10, 4).key == ""  # type: ignore[attr-defined]
    fetch = read(1, 17)
    assert fetch.topics[0].topic == ""  # type: ignore[attr-defined]
    assert fetch.topics[0].partitions[0].last_fetched_epoch == 7  # type: ignore[attr-defined]


def test_a_field_of_versions_in_between_reads_as_its_default() -> None:
    assert read(3, 13).include_cluster_authorized_operations is False  # type: ignore[attr-defined]


def test_a_field_of_no_version_is_a_mistake() -> None:
    with pytest.raises(AttributeError, match="no version of MetadataRequest has a field 'topik'"):
        _ = read(3, 1).topik  # type: ignore[attr-defined]


def test_neutral_values_are_of_the_right_kind() -> None:
    for key in ALL_KEYS:
        for kind in MessageKind:
            for field in fields_of(message(key, versions(key)[-1], kind)):
                neutral = field.neutral()
                if field.is_array and not field.nullable:
                    assert neutral == ()
                elif field.wire_type == "string" and not field.nullable:
                    assert isinstance(neutral, str)
                elif field.wire_type == "error_code":
                    assert neutral is ErrorCode.none


def test_importing_the_adapter_loads_no_message() -> None:
    script = (
        "import sys, ottla.protocol.wire, ottla.protocol.hot\n"
        "print(sum(m.startswith('kio.schema.') and m.count('.') > 3 for m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 8  # the four header versions, which kio itself imports


def test_a_moment_that_has_not_come_is_read_as_none() -> None:
    fields = {
        "transaction_states": [
            {
                "error_code": ErrorCode.none,
                "transactional_id": "t",
                "transaction_state": "Empty",
                "transaction_timeout": 1,
                "transaction_start_time": -1,
                "producer_id": 0,
                "producer_epoch": 0,
                "topics": [],
            }
        ]
    }
    frame = wire.reply(wire.Call(65, 0, 7, None, 0), fields)
    [state] = wire.decode_reply(65, 0, memoryview(frame)[4:]).transaction_states
    assert state.transaction_start_time is None
