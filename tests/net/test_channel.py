"""A channel: reads while it may, sends what is ready, ends when it must."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from pathlib import Path
from weakref import ref

import pytest

from ottla.model.errors import Disconnect
from ottla.net.limits import (
    REQUESTS_PER_TURN,
    STALL_GRACE_MS,
    UNSENT_MAX_BYTES,
    UNSENT_PAUSE_BYTES,
    NetLimits,
)
from ottla.net.request_slot import RequestSlot
from tests.fakes.file_slice import FakeSlice
from tests.net.frames import number_of, reply, request
from tests.net.rig import Parked, Rig, Unread, a_pass, echo

GRACE_S = STALL_GRACE_MS / 1e3


@pytest.mark.spec("NET-28", "NET-10")
async def test_a_request_is_answered_in_the_call_that_read_it() -> None:
    line = Rig().connect(echo)
    line.send(request(7))
    assert line.replies == [7]


@pytest.mark.spec("NET-28")
async def test_all_requests_of_one_read_are_answered_with_one_write() -> None:
    line = Rig().connect(echo)
    writes: list[int] = []
    write = line.transport.write
    line.transport.write = lambda data: (writes.append(len(data)), write(data))[1]  # type: ignore[method-assign,func-returns-value]
    line.send(b"".join(map(request, range(5))))
    assert line.replies == [0, 1, 2, 3, 4]
    assert len(writes) == 1


@pytest.mark.spec("NET-12")
async def test_replies_that_become_ready_later_leave_together_and_in_order() -> None:
    parked = Parked()
    line = Rig().connect(parked)
    line.send(b"".join(map(request, range(3))))
    for number in (2, 1, 0):
        parked.answer(number)
    assert line.replies == [], "not in the middle of somebody else's work"
    await a_pass()
    assert line.replies == [0, 1, 2]


async def test_a_request_that_finishes_anothers_wait_sends_both_replies_before_it_returns() -> None:
    rig, parked = Rig(), Parked()
    fetcher = rig.connect(parked)

    def produce(frame: memoryview, slot: RequestSlot) -> None:
        slot.reply([reply(number_of(frame))])
        parked.answer(1)

    producer = rig.connect(produce)
    fetcher.send(request(1))
    producer.send(request(2))
    assert producer.replies == [2]
    assert fetcher.replies == [1]


@pytest.mark.spec("NET-11", "NET-12")
async def test_at_the_in_flight_bound_reading_stops_and_goes_on_when_replies_have_left() -> None:
    parked = Parked()
    line = Rig(NetLimits(max_inflight_requests_per_connection=3)).connect(parked)
    line.send(b"".join(map(request, range(10))))
    assert sorted(parked.slots) == [0, 1, 2]
    assert line.transport.paused
    with pytest.raises(Unread):
        line.send(request(10))
    answered = 0
    while parked.slots:
        parked.answer(answered)
        answered += 1
        await a_pass()
        await a_pass()
    assert line.replies == list(range(10))
    assert not line.transport.paused


async def test_thousands_of_pipelined_requests_share_with_other_connections() -> None:
    rig = Rig()
    order: list[str] = []

    def named(name: str) -> Callable[[memoryview, RequestSlot], None]:
        def answer(frame: memoryview, slot: RequestSlot) -> None:
            order.append(name)
            echo(frame, slot)

        return answer

    greedy, modest = rig.connect(named("greedy")), rig.connect(named("modest"))
    greedy.send(b"".join(map(request, range(10_000))))
    assert len(order) == REQUESTS_PER_TURN
    modest.send(request(1))
    assert modest.replies == [], "others wait before it"
    await a_pass()
    assert modest.replies == [1]
    assert len(order) <= 2 * REQUESTS_PER_TURN + 1
    while len(greedy.replies) < 10_000:
        await a_pass()
    assert greedy.replies == list(range(10_000))


async def test_bytes_that_come_for_a_connection_that_waits_its_turn_stop_its_reading() -> None:
    line = Rig().connect(echo)
    line.send(b"".join(map(request, range(100))))
    line.send(request(100))
    assert line.transport.paused
    for _ in range(10):
        await a_pass()
    assert line.replies == list(range(101))
    assert not line.transport.paused


async def test_more_requests_than_the_buffer_holds_wait_with_the_peer() -> None:
    line = Rig().connect(echo)
    data = b"".join(map(request, range(200_000)))
    while data:
        try:
            line.send(data)
            data = b""
        except Unread as unread:
            data = data[-unread.args[0] :]
            await a_pass()
    while len(line.transport.written) < 200_000 * 8:
        await a_pass()
    assert line.replies == list(range(200_000))


@pytest.mark.spec("NET-23", "NET-25")
async def test_a_full_run_queue_stops_the_reading_of_newly_readable_connections() -> None:
    rig = Rig(NetLimits(queued_max_requests=2))
    lines = [rig.connect(echo) for _ in range(5)]
    lines[0].send(b"".join(map(request, range(100))))
    for line in lines[1:]:
        line.send(request(1))
    assert [line.transport.paused for line in lines] == [False, False, True, True, True]
    for _ in range(10):
        await a_pass()
    assert [line.replies[-1] for line in lines] == [99, 1, 1, 1, 1]
    assert not any(line.transport.paused for line in lines)


@pytest.mark.spec("NET-31")
async def test_a_control_request_does_not_wait_for_queued_data_requests() -> None:
    rig = Rig()
    data = rig.connect(echo)
    control = rig.connect(echo, listener="CONTROLLER", control=True)
    data.send(b"".join(map(request, range(1_000))))
    control.send(request(1))
    assert control.replies == [1]
    assert len(data.replies) == REQUESTS_PER_TURN


@pytest.mark.spec("NET-17")
@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (struct.pack(">i", -1), "request size -1 is"),
        (struct.pack(">i", 0), "request size 0 is"),
        (struct.pack(">i", 5) + b"short", "request size 5 is"),
        (struct.pack(">i", 2_000_000), "socket.request.max.bytes"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
    ],
)
async def test_bad_wire_input_closes_with_one_line_after_the_replies_before_it(
    bad: bytes, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    line = Rig(NetLimits(socket_request_max_bytes=1_000_000)).connect(echo)
    with caplog.at_level(logging.WARNING):
        line.send(request(1) + bad)
    assert line.replies == [1]
    assert line.transport.closed
    assert len(caplog.records) == 1
    text = caplog.records[0].getMessage()
    assert word in text
    assert "10.0.0.1:4711" in text
    assert "PLAINTEXT" in text


async def test_a_refused_frame_closes_the_connection_with_its_reason_escaped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(_: memoryview, __: RequestSlot) -> None:
        raise Disconnect("api 99\r\nis not offered")

    line = Rig().connect(refuse)
    with caplog.at_level(logging.WARNING):
        line.send(request(1))
    assert line.transport.closed
    assert "api 99\\r\\nis not offered" in caplog.text


@pytest.mark.spec("NET-21")
async def test_closing_later_from_a_slot_closes_the_connection() -> None:
    parked = Parked()
    line = Rig().connect(parked)
    line.send(request(1))
    parked.slots[1].close("the log directory failed")
    await a_pass()
    assert line.transport.closed


@pytest.mark.spec("NET-17")
async def test_an_idle_connection_is_closed_and_a_waiting_or_young_one_is_not() -> None:
    rig, parked = Rig(NetLimits(connections_max_idle_ms=60_000)), Parked()
    idle, waiting = rig.connect(echo), rig.connect(parked)
    waiting.send(request(1))
    rig.sweep(59)
    young = rig.connect(echo)
    rig.sweep(2)
    assert idle.transport.closed
    assert not waiting.transport.is_closing()
    assert not young.transport.is_closing()


async def test_a_byte_a_minute_is_cut_off_but_a_slow_large_upload_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig()
    dribble, upload = rig.connect(echo), rig.connect(echo)
    large = request(1, size=4_000_000)
    dribble.send(large[:5])
    upload.send(large[:1_000_000])
    rig.sweep(GRACE_S - 1)
    dribble.send(b"\0")
    upload.send(large[1_000_000:2_000_000])
    with caplog.at_level(logging.WARNING):
        rig.sweep(2)
        await a_pass()
    assert dribble.transport.closed
    assert "request timed out" in caplog.text
    assert not upload.transport.is_closing()
    upload.send(large[2_000_000:])
    assert upload.replies == [1]


async def test_the_clock_of_an_unfinished_frame_starts_with_that_frame() -> None:
    rig = Rig()
    line = rig.connect(echo)
    line.send(request(0)[:6])
    for number in range(4):  # always half a frame ahead, for longer than the grace in all
        rig.sweep(GRACE_S - 1)
        line.send(request(number)[6:] + request(number + 1)[:6])
    await a_pass()
    assert line.replies == [0, 1, 2, 3]
    assert not line.transport.is_closing()


async def test_a_peer_that_does_not_read_is_not_read_from_and_at_the_cap_it_is_closed() -> None:
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(b"".join(map(request, range(6))))
    line.channel.pause_writing()
    body = bytes(UNSENT_MAX_BYTES // 4)
    parked.answer(0, body)
    await a_pass()
    assert line.transport.paused, "over the mark: no more requests from it"
    assert len(body) > UNSENT_PAUSE_BYTES
    for number in range(1, 4):
        parked.answer(number, body)
        await a_pass()
    assert line.transport.aborted, "over the cap"
    parked.answer(4)
    await a_pass()


async def test_the_files_of_a_reply_that_had_to_wait_are_closed_as_they_are_sent(
    tmp_path: Path,
) -> None:
    """Not with their request, when thousands would be closed at once."""
    path = tmp_path / "segment"
    path.write_bytes(bytes(100_000))
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(request(0))
    line.channel.pause_writing()
    slot = parked.slots.pop(0)
    part = FakeSlice(path, 0, 100_000)
    sent = ref(part)
    slot.reply([struct.pack(">ii", 100_004, 0), part])
    del part
    await a_pass()
    assert sent() is not None
    line.channel.resume_writing()
    await a_pass()
    assert len(line.transport.written) == 100_008
    assert sent() is None, "though the request is not forgotten yet"
    assert slot.alive


async def test_a_peer_that_reads_again_gets_everything_and_is_read_from_again() -> None:
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(request(0))
    line.channel.pause_writing()
    parked.answer(0, bytes(UNSENT_PAUSE_BYTES))
    await a_pass()
    assert line.transport.paused
    assert line.replies == []
    line.channel.resume_writing()
    assert line.replies == [0]
    assert not line.transport.paused


async def test_a_peer_that_takes_nothing_for_the_idle_time_is_closed() -> None:
    rig, parked = Rig(NetLimits(connections_max_idle_ms=60_000)), Parked()
    line = rig.connect(parked)
    line.send(request(0))
    line.channel.pause_writing()
    parked.answer(0)
    await a_pass()
    rig.sweep(50)
    assert not line.transport.is_closing()
    rig.sweep(11)
    assert line.transport.aborted


async def test_a_peer_that_is_found_gone_when_more_could_be_sent_is_let_go() -> None:
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(request(0))
    line.channel.pause_writing()
    parked.answer(0)
    await a_pass()

    def gone(_: object) -> None:
        raise ConnectionResetError("by peer")

    line.transport.write = gone  # type: ignore[method-assign,assignment]
    line.channel.resume_writing()
    assert line.transport.aborted
    assert line.channel.idle


async def test_a_reply_whose_file_fails_ends_the_connection_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"shorter than promised")
    line = Rig().connect(lambda _, slot: slot.reply([b"head", FakeSlice(path, 0, 100_000)]))
    with caplog.at_level(logging.WARNING):
        line.send(request(1))
    assert line.transport.aborted
    assert "shorter than the slice" in caplog.text


@pytest.mark.spec("NET-16")
async def test_who_wants_to_know_is_told_after_the_last_byte_has_left() -> None:
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(request(0) + request(1))
    sent: list[int] = []
    parked.slots[0].on_sent = lambda: sent.append(0)
    parked.slots[1].on_sent = lambda: sent.append(1)
    parked.answer(0)
    await a_pass()
    assert sent == [0]
    line.channel.pause_writing()
    parked.answer(1)
    await a_pass()
    assert sent == [0]
    line.channel.resume_writing()
    assert sent == [0, 1]


async def test_a_reply_from_a_cold_file_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(reply(1, b"records"))
    cold = FakeSlice(path, 0, 15, cold=True)
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(request(1) + request(2))
    parked.slots.pop(1).reply([cold])
    parked.answer(2)
    while line.replies != [1, 2]:
        await a_pass()
    assert cold.warmed == 1


@pytest.mark.spec("NET-13")
async def test_a_peer_that_goes_away_leaves_nothing_behind() -> None:
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(request(1) + request(2, size=500_000)[:100_000])
    assert rig.network.buffers.kept_bytes > 0
    assert rig.network.connection_counts.total == 1
    line.lose()
    parked.answer(1)
    await a_pass()
    assert line.replies == []
    assert rig.network.buffers.kept_bytes == 0
    assert (rig.network.connection_counts.total, rig.network.live, rig.network.dirty) == (0, {}, [])


async def test_a_connection_that_falls_silent_gives_its_memory_back() -> None:
    rig = Rig()
    line = rig.connect(echo)
    line.send(request(1, size=3_000_000))
    assert line.replies == [1]
    assert rig.network.buffers.kept_bytes > 0
    rig.sweep(5)
    assert rig.network.buffers.kept_bytes == 0


async def test_a_retired_connection_answers_what_it_started_and_closes() -> None:
    rig, parked = Rig(), Parked()
    idle, busy = rig.connect(echo), rig.connect(parked)
    busy.send(request(1))
    for live in rig.network.connections_of("PLAINTEXT"):
        live.drain()
    assert idle.transport.closed
    assert busy.transport.paused
    assert not busy.transport.is_closing()
    parked.answer(1)
    await a_pass()
    assert busy.replies == [1]
    assert busy.transport.closed


@pytest.mark.spec("SEC-07", "WIRE-14")
async def test_a_throttled_connection_is_answered_and_then_not_read_for_a_while() -> None:
    def answer(frame: memoryview, slot: RequestSlot) -> None:
        if number_of(frame) == 1:
            slot.throttle(500)
            slot.throttle(200)
        slot.reply([reply(number_of(frame))])

    rig = Rig()
    line, other = rig.connect(answer), rig.connect(echo)
    line.send(request(1) + request(2))
    assert line.replies == [1], "the reply is not delayed"
    assert line.transport.paused
    other.send(request(3))
    assert other.replies == [3], "others are not slowed down"
    await asyncio.sleep(0.499)
    assert line.replies == [1]
    await asyncio.sleep(0.01)
    assert line.replies == [1, 2]
    assert not line.transport.paused


async def test_a_throttled_connection_may_be_closed() -> None:
    def answer(frame: memoryview, slot: RequestSlot) -> None:
        slot.throttle(60_000)
        slot.reply([reply(number_of(frame))])

    line = Rig().connect(answer)
    line.send(request(1))
    line.channel.connection_lost(None)
    await asyncio.sleep(61)
    assert line.replies == [1]
