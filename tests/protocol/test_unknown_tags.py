"""Tagged fields of newer peers are ignored, wherever they stand."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.model.errors import Disconnect
from ottla.protocol import wire

METADATA, VERSION = 3, 12
UNKNOWN = b"\x63\x03abc"
OTHER = b"\x64\x00"
TOPICS = [
    {"topic_id": None, "name": "one"},
    {"topic_id": UUID(int=5), "name": None},
    {"topic_id": None, "name": "two"},
]


def request(*, in_body: bytes = b"\0", in_topics: bytes = b"\0") -> memoryview:
    """A frame without its size, with these tagged fields at the end of the body and each topic."""
    fields = {
        "topics": TOPICS,
        "allow_auto_topic_creation": True,
        "include_topic_authorized_operations": False,
    }
    plain = wire.encode_request(METADATA, VERSION, 7, "c", fields)[4:]
    head, tail = plain[:-3], plain[-3:-1]
    for name in (b"\x04one\0", bytes(15) + b"\x05\0\0", b"\x04two\0"):
        assert head.count(name) == 1
        head = head.replace(name, name[:-1] + in_topics)
    return memoryview(head + tail + in_body)


def read(frame: memoryview) -> object:
    return wire.decode(wire.parse_call(frame), frame)


def test_unknown_tagged_fields_are_ignored_in_the_body_and_in_every_struct() -> None:
    plain = read(request())
    assert read(request(in_body=b"\x01" + UNKNOWN)) == plain
    assert read(request(in_body=b"\x02" + UNKNOWN + OTHER)) == plain
    assert read(request(in_topics=b"\x01" + OTHER)) == plain
    assert read(request(in_topics=b"\x02" + UNKNOWN + OTHER, in_body=b"\x01" + UNKNOWN)) == plain


def test_known_tagged_fields_beside_unknown_ones_are_read() -> None:
    fetch = {
        "max_wait": 0, "min_bytes": 1, "topics": [], "forgotten_topics_data": [],
        "cluster_id": "it",
    }  # fmt: skip
    plain = wire.encode_request(1, 12, 7, "c", fetch)[4:]
    known = b"\x01\x00\x03\x03it"
    assert plain.endswith(known)
    more = memoryview(plain[: -len(known)] + b"\x02" + known[1:] + UNKNOWN)
    message = wire.decode(wire.parse_call(more), more)
    assert message.cluster_id == "it"
    assert message == wire.decode(wire.parse_call(memoryview(plain)), memoryview(plain))


def test_replies_of_newer_brokers_are_read() -> None:
    call = wire.parse_call(request())
    fields = {
        "throttle_time": 0, "brokers": [], "cluster_id": "x", "controller_id": 1, "topics": [],
    }  # fmt: skip
    plain = wire.reply(call, fields)[4:]
    newer = memoryview(plain[:-1] + b"\x01" + UNKNOWN)
    assert wire.decode_reply(METADATA, VERSION, newer) == wire.decode_reply(
        METADATA, VERSION, memoryview(plain)
    )


@pytest.mark.parametrize("tags", [b"\x01\x63\x09abc", b"\x02" + UNKNOWN, b"\x7f" + UNKNOWN])
def test_tagged_fields_that_run_past_the_end_are_refused(tags: bytes) -> None:
    with pytest.raises(Disconnect):
        read(request(in_body=tags))
