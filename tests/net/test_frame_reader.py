"""Frames out of bytes: whatever the pieces, whole and in order, in little memory."""

from __future__ import annotations

import resource
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import Disconnect
from ottla.net.buffers import Buffers
from ottla.net.frame_reader import STASH_MAX, FrameReader
from tests.net.frames import request

KB = 1 << 10
MB = 1 << 20


def put(reader: FrameReader, data: bytes) -> int:
    """Read as much of `data` as the reader has space for."""
    return offer(reader, data)[0]


def offer(reader: FrameReader, data: bytes) -> tuple[int, bool]:
    """As `put`; and whether it is worth looking for frames."""
    space = reader.space()
    count = min(len(space), len(data))
    assert count, "a loop would fail on an empty buffer"
    space[:count] = data[:count]
    return count, reader.filled(count)


def frames_of(reader: FrameReader) -> list[bytes]:
    found: list[bytes] = []
    while (frame := reader.next_frame()) is not None:
        found.append(bytes(frame))
        frame.release()
    reader.settle()
    return found


def receive(reader: FrameReader, data: bytes, piece: int) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at < len(data):
        count, whole = offer(reader, data[at : at + piece])
        at += count
        if whole:
            found += frames_of(reader)
    return found


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.spec("NET-11", "NET-18")
@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(8, 6_000) | st.integers(8, 90_000), min_size=1, max_size=6),
    pieces=st.lists(st.integers(1, 100_000), min_size=1, max_size=8),
    shared_bytes=st.sampled_from([STASH_MAX + 1, 64 * KB]),
    lent_max=st.sampled_from([0, 2]),
)
def test_frames_come_out_whole_and_in_order_however_the_bytes_arrive(
    sizes: list[int], pieces: list[int], shared_bytes: int, lent_max: int
) -> None:
    buffers = Buffers(shared_bytes, lent_max)
    one, other = FrameReader(buffers, MB), FrameReader(buffers, MB)
    bodies = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    data = b"".join(map(framed, bodies))
    found: dict[FrameReader, list[bytes]] = {one: [], other: []}
    at = {one: 0, other: 0}
    turn = 0
    while min(at.values()) < len(data):  # two peers take turns, so buffers must not be mixed up
        reader = (one, other)[turn % 2]
        piece = pieces[turn % len(pieces)]
        turn += 1
        if at[reader] < len(data):
            count, whole = offer(reader, data[at[reader] : at[reader] + piece])
            at[reader] += count
            if whole:
                found[reader] += frames_of(reader)
            elif piece % 7 == 0:
                reader.trim()
    assert found[one] == found[other] == bodies
    for reader in (one, other):
        reader.close()
    assert (buffers.kept_bytes, buffers.admission.used) == (0, 0)


def test_the_api_key_of_the_frame_last_taken_is_known() -> None:
    reader = FrameReader(Buffers(), MB)
    put(reader, request(1, api=18) + request(2, api=-3))
    reader.next_frame()
    assert reader.api == 18
    reader.next_frame()
    assert reader.api == -3


@pytest.mark.spec("NET-17")
@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (struct.pack(">i", -1), "size -1 is too small"),
        (struct.pack(">i", 0), "size 0 is too small"),
        (struct.pack(">i", 7), "size 7 is too small"),
        (struct.pack(">i", -(2**31)), "too small"),
        (struct.pack(">i", MB + 1), "above socket.request.max.bytes"),
        (struct.pack(">i", 2**31 - 1), "above socket.request.max.bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
    ],
)
def test_a_size_that_cannot_be_is_refused_as_soon_as_it_is_here(first: bytes, reason: str) -> None:
    reader = FrameReader(Buffers(), MB)
    put(reader, first)
    assert reader.has_frame
    with pytest.raises(Disconnect, match=reason):
        reader.next_frame()


def test_the_largest_size_that_is_allowed_is_allowed() -> None:
    reader = FrameReader(Buffers(), MB)
    put(reader, struct.pack(">i", MB))
    assert reader.next_frame() is None
    put(reader, request(1))


def test_frames_before_a_wrong_size_are_still_handed_out() -> None:
    reader = FrameReader(Buffers(), MB)
    put(reader, request(1) + request(2) + struct.pack(">i", -1))
    assert reader.next_frame() is not None
    assert reader.next_frame() is not None
    with pytest.raises(Disconnect):
        reader.next_frame()


@pytest.mark.spec("NET-20")
def test_a_lying_size_allocates_nothing_until_bytes_come() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    reader = FrameReader(buffers, 100 * MB)
    receive(reader, struct.pack(">i", 100 * MB) + bytes(100), 104)
    assert buffers.kept_bytes == 0
    before = resident_bytes()
    receive(reader, bytes(200 * KB), 64 * KB)
    assert buffers.kept_bytes == buffers.admission.used == 100 * MB + 4
    assert resident_bytes() - before < 10 * MB, "memory follows the bytes, not the claim"


def test_an_idle_inbox_keeps_no_buffer_after_a_large_frame() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    reader = FrameReader(buffers, 100 * MB)
    assert receive(reader, framed(bytes(MB)), 64 * KB) == [bytes(MB)]
    assert buffers.kept_bytes <= MB + 4, "kept for the next large frame"
    reader.trim()
    assert buffers.kept_bytes == 0


def test_a_stalled_frame_goes_on_where_it_stopped() -> None:
    buffers = Buffers(shared_bytes=MB)
    reader = FrameReader(buffers, 100 * MB)
    receive(reader, struct.pack(">i", 10 * MB) + bytes(STASH_MAX), MB)
    reader.trim()
    assert receive(reader, bytes(10 * MB - STASH_MAX), MB) == [bytes(10 * MB)]


@pytest.mark.spec("NET-20", "NET-25")
def test_a_large_frame_waits_until_there_is_memory_and_then_arrives_whole() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    buffers.admission.set_limit(300 * KB)
    first, second = FrameReader(buffers, MB), FrameReader(buffers, MB)
    body = bytes(range(256)) * 800
    receive(first, framed(body)[: 60 * KB], 60 * KB)
    receive(second, framed(body)[: 60 * KB], 60 * KB)
    assert not first.starved
    assert second.starved
    assert second.is_full
    assert second.missing_memory() == len(body) + 4
    assert receive(first, framed(body)[60 * KB :], 64 * KB) == [body], "who began may finish"
    first.close()
    assert buffers.admission.try_acquire(second.missing_memory())
    second.admit(second.missing_memory())
    assert receive(second, framed(body)[60 * KB :], 64 * KB) == [body]
    second.close()
    assert (buffers.kept_bytes, buffers.admission.used) == (0, 0)


@pytest.mark.spec("NET-20")
def test_a_frame_is_granted_its_whole_size_before_its_body_is_read() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    reader = FrameReader(buffers, 100 * MB)
    receive(reader, framed(bytes(10 * MB))[: 40 * KB], 40 * KB)
    assert buffers.admission.used == reader.granted == 10 * MB + 4
    receive(reader, framed(bytes(10 * MB))[40 * KB :], 64 * KB)
    assert receive(reader, framed(bytes(20 * MB))[: 40 * KB], 40 * KB) == []
    reader.close()
    assert buffers.admission.used == 0


def test_those_who_wait_for_memory_do_not_keep_each_other_waiting() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    buffers.admission.set_limit(300 * KB)
    first = FrameReader(buffers, MB)
    waiting = [FrameReader(buffers, MB) for _ in range(5)]
    for reader in (first, *waiting):
        receive(reader, framed(bytes(200 * KB))[: 60 * KB], 60 * KB)
    assert all(reader.starved for reader in waiting)
    first.close()
    assert buffers.admission.used == 0


def test_a_next_frame_that_is_larger_gives_up_what_it_had_and_waits() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    buffers.admission.set_limit(400 * KB)
    reader = FrameReader(buffers, MB)
    others = framed(bytes(100 * KB))
    data = others + framed(bytes(900 * KB))
    assert buffers.admission.try_acquire(100 * KB)
    found = receive(reader, data[: 120 * KB], 64 * KB)
    assert found == [bytes(100 * KB)]
    assert not reader.starved, "what is here of it fits into the stash"
    assert reader.granted == 0
    assert offer(reader, data[120 * KB : 160 * KB])[1]
    assert frames_of(reader) == []
    assert reader.starved
    assert reader.missing_memory() == 900 * KB + 4


def test_memory_kept_for_a_next_frame_goes_to_those_who_wait() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    buffers.admission.set_limit(8 * MB)
    reader = FrameReader(buffers, 10 * MB)
    large = framed(bytes(5 * MB))
    assert receive(reader, large, 64 * KB) == [bytes(5 * MB)]
    assert reader.granted == 5 * MB + 4, "kept, while nobody wants it"
    resumed: list[bool] = []
    assert not buffers.admission.try_acquire(6 * MB)
    buffers.admission.wait(6 * MB, 0, lambda: resumed.append(True))
    assert receive(reader, large, 64 * KB) == [bytes(5 * MB)]
    assert reader.granted == 0
    assert resumed == [True]


def test_small_frames_go_on_when_there_is_no_memory_for_large_ones() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    buffers.admission.set_limit(0)
    assert receive(FrameReader(buffers, MB), request(1, size=500), 100) == [
        request(1, size=500)[4:]
    ]


def test_whole_frames_that_were_read_before_memory_ran_out_are_handed_out() -> None:
    """They wait for their turn in a stash, and what is left then needs no memory any more."""
    buffers = Buffers(shared_bytes=64 * KB)
    buffers.admission.set_limit(0)
    assert buffers.admission.try_acquire(MB)
    reader = FrameReader(buffers, MB)
    put(reader, b"".join(request(n, size=1_000) for n in range(60)))
    reader.settle()
    assert reader.starved
    assert len(frames_of(reader)) == 60
    assert reader.missing_memory() == 0
    assert not reader.is_full


def test_whole_frames_that_wait_for_their_turn_stay_where_they_are() -> None:
    buffers = Buffers(shared_bytes=64 * KB)
    reader = FrameReader(buffers, MB)
    many = b"".join(request(n, size=1_000) for n in range(65))
    put(reader, many)
    taken = []
    while reader.has_frame:
        frame = reader.next_frame()
        assert frame is not None
        taken.append(bytes(frame))
        reader.settle()
    assert b"".join(map(framed, taken)) == many[: len(taken) * 1_004]
    assert len(taken) == 64 * KB // 1_004
