from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import Disconnect
from ottla.net import reply_reader
from ottla.net.reply_reader import ReplyReader


def frame(size: int, fill: int = 7) -> bytes:
    return size.to_bytes(4, "big") + bytes([fill]) * size


def receive(reader: ReplyReader, data: bytes, most: int = 1 << 30) -> list[memoryview]:
    """Read as a socket would: as much as there is room for, in pieces."""
    found: list[memoryview] = []
    at = 0
    while at < len(data):
        room = reader.space()
        piece = data[at : at + min(most, len(room))]
        assert piece, "there is always room"
        room[: len(piece)] = piece
        found += reader.filled(len(piece))
        at += len(piece)
    return found


@given(st.lists(st.integers(4, 300), max_size=12), st.integers(1, 400))
def test_replies_come_whole_and_in_order_however_they_are_cut(sizes: list[int], most: int) -> None:
    """Some fit the buffer of 64 bytes, some do not."""
    reader = ReplyReader(read_bytes=64, max_bytes=1_000)
    data = b"".join(frame(size, at) for at, size in enumerate(sizes))
    found = receive(reader, data, most)
    assert [bytes(reply) for reply in found] == [
        bytes([at]) * size for at, size in enumerate(sizes)
    ]


def test_a_reply_is_its_readers_to_keep() -> None:
    reader = ReplyReader(read_bytes=64, max_bytes=1_000)
    kept = receive(reader, frame(10, 1) + frame(500, 2))
    receive(reader, frame(10, 3) + frame(500, 4))
    assert [reply[0] for reply in kept] == [1, 2]


def test_a_large_reply_is_read_into_memory_of_its_own() -> None:
    reader = ReplyReader(read_bytes=64, max_bytes=1_000)
    assert receive(reader, frame(500)[:100]) == []
    assert len(reader.space()) == 404, "all that is missing, and nothing else"


@pytest.mark.parametrize("size", [-1, 3, 1_001])
def test_a_size_that_cannot_be_ends_the_connection(size: int) -> None:
    reader = ReplyReader(read_bytes=64, max_bytes=1_000)
    with pytest.raises(Disconnect, match=f"invalid reply size {size}"):
        receive(reader, size.to_bytes(4, "big", signed=True))


def test_a_size_alone_is_not_worth_all_the_memory_it_asks_for() -> None:
    reader = ReplyReader(read_bytes=64, max_bytes=1 << 31)
    receive(reader, (reply_reader.TRUSTED_BYTES + 10).to_bytes(4, "big") + b"begin")
    assert len(reader.space()) == reply_reader.TRUSTED_BYTES - 5
    list(reader.filled(reply_reader.TRUSTED_BYTES - 5))
    assert len(reader.space()) == 10
    (whole,) = reader.filled(10)
    assert len(whole) == reply_reader.TRUSTED_BYTES + 10
    assert bytes(whole[:5]) == b"begin"
