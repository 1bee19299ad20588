"""The pieces of the hand-written replies, in both encodings."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.protocol.hot.parts import (
    Endpoint,
    put_count,
    put_endpoints,
    put_string,
    tagged,
    topic_bytes,
)


@pytest.mark.spec("REC-44")
def test_counts_are_plain_or_compact() -> None:
    for count, compact in ((0, "01"), (1, "02"), (126, "7f"), (127, "8001"), (300, "ad02")):
        out = bytearray()
        put_count(out, count, flexible=False)
        put_count(out, count, flexible=True)
        assert out.hex() == f"{count:08x}{compact}"


@pytest.mark.spec("REC-42")
def test_strings_are_plain_or_compact_and_may_be_null() -> None:
    out = bytearray()
    for text in ("ab", "", None):
        put_string(out, text, flexible=False)
        put_string(out, text, flexible=True)
    assert out.hex(" ") == "00 02 61 62 03 61 62 00 00 01 ff ff 00"


def test_a_topic_is_named_or_numbered() -> None:
    assert topic_bytes("t", flexible=True) == b"\x02t"
    assert topic_bytes("t", flexible=False) == b"\0\x01t"
    assert topic_bytes(UUID(int=1), flexible=True) == bytes(15) + b"\x01"


def test_endpoints_are_one_tagged_field() -> None:
    out = bytearray()
    put_endpoints(out, [Endpoint(1, "h", 2)])
    assert out == b"\x01" + tagged(0, b"\x02\0\0\0\x01\x02h\0\0\0\x02\0\0")
