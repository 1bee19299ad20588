"""The writer: every byte once, in order, whatever the wire takes."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.net.limits import SEND_TURN_BYTES
from ottla.net.reply_writer import MERGE_PARTS, SMALL_FILE_BYTES, ReplyWriter
from ottla.net.request_slot import Bytes, FileSlice, Part


class SlowWire:
    """Takes as many bytes as it is allowed to; remembers how they came."""

    held_bytes = 0

    def __init__(self, allowed: int = 1 << 62) -> None:
        self.allowed = allowed
        self.out = bytearray()
        self.hints: list[bool] = []
        self.calls = 0
        self.callback: Callable[[], None] | None = None
        self.broken = False
        self.closed = False

    def write(self, data: Bytes) -> int:
        self.calls += 1
        if self.broken:
            raise ConnectionResetError("gone")
        assert not self.closed
        taken = min(len(data), self.allowed)
        self.out += data[:taken]
        self.allowed -= taken
        return taken

    def write_all(self, buffers: Sequence[Bytes], *, more: bool) -> int:
        self.hints.append(more)
        return self.write(b"".join(buffers))

    def send_file(self, slice_: FileSlice, at: int, limit: int) -> int:
        return self.write(slice_.read()[at : at + limit])

    def call_when_writable(self, callback: Callable[[], None] | None) -> None:
        self.callback = callback

    def close(self) -> None:
        self.closed = True

    def allow(self, count: int) -> None:
        """The peer takes `count` more bytes."""
        self.allowed += count
        if self.callback is not None:
            self.callback()


class Piece:
    """A slice of no file at all; `large` ones are padded so that they are worth sendfile."""

    position = 0

    def __init__(self, data: bytes, *, cold: bool = False, large: bool = False) -> None:
        self._data = data.ljust(SMALL_FILE_BYTES + 1, b".") if large else data
        self.size = len(self._data)
        self.cold = cold

    def fileno(self) -> int:
        raise AssertionError("only a real wire asks")

    def read(self) -> bytes:
        return self._data

    def is_cached(self) -> bool:
        return not self.cold

    def warm(self) -> None:
        self.cold = False


class Threads:
    """Runs blocking work when the test says it is done."""

    def __init__(self) -> None:
        self.work: list[tuple[Callable[[], object], Done]] = []

    def run(self, work: Callable[[], object]) -> Future[Any]:
        done = Done()
        self.work.append((work, done))
        return done  # type: ignore[return-value]

    def finish(self) -> None:
        work, self.work = self.work, []
        for call, done in work:
            call()
            done.callback(done)


class Done:
    """As much of a future as a writer looks at."""

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        self.callback = callback

    def cancelled(self) -> bool:
        return False

    def exception(self) -> None:
        return None


def writer(wire: SlowWire) -> tuple[ReplyWriter, Threads, list[int]]:
    threads = Threads()
    progress: list[int] = []
    made = ReplyWriter(wire, lambda: progress.append(made.delivered), threads.run)
    return made, threads, progress


def bytes_of(parts: Sequence[Part]) -> bytes:
    return b"".join(
        part if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in parts
    )


@pytest.mark.spec("NET-09")
def test_one_small_reply_is_one_write() -> None:
    wire = SlowWire()
    assert writer(wire)[0].send([b"reply"])
    assert (bytes(wire.out), wire.calls) == (b"reply", 1)


def test_several_small_replies_are_one_write() -> None:
    wire = SlowWire()
    assert writer(wire)[0].send([b"one", b"two", b"three"])
    assert (bytes(wire.out), wire.calls) == (b"onetwothree", 1)


def test_bytes_before_a_file_are_sent_with_the_hint_that_more_follows() -> None:
    wire = SlowWire()
    parts: list[Part] = [
        b"head",
        Piece(b"x", large=True),
        b"middle",
        Piece(b"y", large=True),
        b"tail",
    ]
    assert writer(wire)[0].send(parts)
    assert bytes(wire.out) == bytes_of(parts)
    assert wire.hints == [True, True, False]


def test_small_files_are_read_and_sent_with_the_bytes_around_them_in_one_write() -> None:
    wire = SlowWire()
    assert writer(wire)[0].send([b"head", Piece(b"records"), b"middle", Piece(b"more"), b"tail"])
    assert (bytes(wire.out), wire.calls) == (b"headrecordsmiddlemoretail", 1)


def test_a_small_file_that_ended_early_is_an_error_and_not_a_short_reply() -> None:
    cut = Piece(b"records")
    cut.size += 1
    with pytest.raises(OSError, match="shorter than the slice"):
        writer(SlowWire())[0].send([b"head", cut])


PARTS = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=40).map(bytearray),
    st.binary(max_size=40).map(lambda data: memoryview(data)),
    st.builds(Piece, st.binary(max_size=60), cold=st.booleans(), large=st.booleans()),
)


@pytest.mark.spec("NET-10", "NET-16")
@given(
    sends=st.lists(st.lists(PARTS, min_size=1, max_size=5), min_size=1, max_size=6),
    taken=st.lists(st.integers(0, 50), max_size=30),
)
def test_every_byte_leaves_once_and_in_order_whatever_the_wire_takes(
    sends: list[list[Part]], taken: list[int]
) -> None:
    wire = SlowWire(allowed=0)
    made, threads, progress = writer(wire)
    for parts in sends:
        made.send(parts)
        wire.allow(taken.pop() if taken else 0)
        threads.finish()
    while not made.idle:
        threads.finish()
        wire.allow(777)
    assert bytes(wire.out) == b"".join(map(bytes_of, sends))
    assert made.promised == made.delivered <= len(wire.out)
    assert made.unsent_bytes == 0
    assert progress == sorted(progress)
    assert wire.callback is None, "nothing left to wait for"


@pytest.mark.spec("NET-16")
def test_what_is_unsent_is_known_and_files_cost_no_memory() -> None:
    wire = SlowWire(allowed=10)
    made, _, progress = writer(wire)
    file = Piece(b"y", large=True)
    assert not made.send([b"x" * 30, file])
    assert (made.unsent_bytes, made.promised, made.delivered) == (20, 30 + file.size, 10)
    assert not made.idle
    wire.allow(1 << 20)
    assert progress == [30 + file.size]
    assert made.idle


def test_a_cold_file_is_warmed_on_a_thread_and_later_replies_wait_behind_it() -> None:
    wire = SlowWire()
    made, threads, _ = writer(wire)
    assert not made.send([b"head", Piece(b"cold", cold=True)])
    assert not made.send([b"next"])
    assert bytes(wire.out) == b"head"
    assert wire.callback is None, "a writable socket is no reason to wake up"
    threads.finish()
    assert bytes(wire.out) == b"headcoldnext"


def test_every_cold_file_of_a_reply_is_warmed_before_it_is_sent() -> None:
    wire = SlowWire()
    made, threads, _ = writer(wire)
    made.send([Piece(b"first", cold=True), Piece(b"second", cold=True)])
    assert wire.out == b""
    threads.finish()
    assert bytes(wire.out) == b"first"
    threads.finish()
    assert bytes(wire.out) == b"firstsecond"


def test_a_file_is_asked_once_whether_it_is_warm() -> None:
    asked: list[str] = []

    class Curious(Piece):
        def is_cached(self) -> bool:
            asked.append("asked")
            return True

    wire = SlowWire(allowed=0)
    made, _, _ = writer(wire)
    made.send([Curious(b"data", large=True)])
    for _ in range(4):
        wire.allow(10_000)
    assert made.idle
    assert asked == ["asked"]


def test_a_large_reply_leaves_in_turns() -> None:
    wire = SlowWire()
    made, _, _ = writer(wire)
    data = bytes(SEND_TURN_BYTES + 1)
    assert not made.send([b"head", Piece(data)])
    assert len(wire.out) <= SEND_TURN_BYTES + 4
    wire.allow(0)
    assert made.idle


def test_a_reply_of_many_small_files_is_read_in_turns() -> None:
    wire = SlowWire()
    counted = CountedPiece.reads = 0
    parts: list[Part] = [CountedPiece(b"%05d" % number) for number in range(MERGE_PARTS * 4)]
    sender = writer(wire)[0]
    assert not sender.send(parts)
    turns = 1
    while not sender.idle:
        assert CountedPiece.reads - counted <= MERGE_PARTS * 2
        counted, turns = CountedPiece.reads, turns + 1
        assert sender.unsent_bytes == 0, "files that are not read yet cost no memory"
        wire.allow(0)
    assert bytes(wire.out) == bytes_of(parts)
    assert (turns, sender.unsent_bytes, sender.delivered) == (4, 0, sender.promised)


class CountedPiece(Piece):
    reads = 0

    def read(self) -> bytes:
        CountedPiece.reads += 1
        return super().read()


def test_a_lost_peer_is_an_error_when_sending_and_a_flag_when_nobody_is() -> None:
    wire = SlowWire(allowed=0)
    made, _, progress = writer(wire)
    made.send([b"reply"])
    wire.broken = True
    wire.allow(5)
    assert isinstance(made.failed, ConnectionResetError)
    assert progress, "whoever owns the writer is told"
    wire = SlowWire()
    wire.broken = True
    with pytest.raises(ConnectionResetError):
        writer(wire)[0].send([b"reply"])


def test_after_close_nothing_is_sent_not_even_what_was_being_warmed() -> None:
    wire = SlowWire()
    made, threads, _ = writer(wire)
    made.send([Piece(b"cold", cold=True), b"rest"])
    made.close()
    threads.finish()
    assert (bytes(wire.out), made.idle, made.unsent_bytes) == (b"", True, 0)
    made.close()


def test_empty_parts_are_no_work(tmp_path: Path) -> None:
    wire = SlowWire()
    assert writer(wire)[0].send([b"", Piece(b""), b""])
    assert wire.out == b""
