"""Channels when memory is short: who waits, who is closed, and who is served all the same."""

from __future__ import annotations

import pytest

from ottla.net.limits import MEMORY_WAIT_MAX_MS, UNSENT_PAUSE_BYTES, NetLimits
from tests.net.frames import request
from tests.net.rig import Parked, Rig, Unread, a_pass, echo


@pytest.mark.spec("NET-20", "NET-25")
async def test_a_large_frame_waits_for_memory_while_others_have_it() -> None:
    rig = Rig(NetLimits(queued_max_request_bytes=1 << 20))
    first, second = rig.connect(echo), rig.connect(echo)
    large = request(1, size=500_000)
    first.send(large[:400_000])
    second.send(large[:400_000])
    assert not first.transport.paused
    assert second.transport.paused
    first.send(large[400_000:])
    assert first.replies == [1]
    assert not second.transport.paused
    second.send(large[400_000:])
    assert second.replies == [1]
    for line in (first, second):
        line.lose()
    admission = rig.network.buffers.admission
    assert (admission.used, admission.partial_bytes, admission.waiting) == (0, 0, 0)


@pytest.mark.spec("NET-20")
async def test_a_frame_that_stalls_is_closed_sooner_when_others_wait_for_its_memory() -> None:
    rig = Rig(NetLimits(queued_max_request_bytes=4 << 20))
    stalled, waits = rig.connect(echo), rig.connect(echo)
    large = request(1, size=3_000_000)
    stalled.send(large[:40_000])
    rig.sweep(20)
    assert not stalled.transport.is_closing(), "nobody wants its memory"
    waits.send(large[:40_000])
    assert waits.transport.paused
    rig.sweep(0)
    await a_pass()
    assert stalled.transport.is_closing()
    assert not waits.transport.paused
    waits.send(large[40_000:])
    assert waits.replies == [1]


async def test_who_waits_too_long_for_memory_is_closed_with_a_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(NetLimits(queued_max_request_bytes=4 << 20))
    slow, waits = rig.connect(echo), rig.connect(echo)
    large = request(1, size=3_000_000)
    slow.send(large[:40_000])
    waits.send(large[:40_000])
    rig.clock.ns += MEMORY_WAIT_MAX_MS * 1_000_000
    waits.channel.sweep(rig.clock.ns)
    assert not waits.transport.is_closing()
    rig.clock.ns += 1
    waits.channel.sweep(rig.clock.ns)
    await a_pass()
    assert waits.transport.is_closing()
    assert "no memory for a request of 3000004 bytes" in caplog.text
    assert "queued.max.request.bytes=4194304" in caplog.text
    assert rig.network.buffers.admission.waiting == 0


async def test_when_too_many_wait_for_memory_newcomers_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = Rig(NetLimits(queued_max_request_bytes=4 << 20))
    large = request(1, size=3_000_000)
    lines = [rig.connect(echo) for _ in range(8)]
    for line in lines:
        line.send(large[:300_000])
    await a_pass()
    assert [line.transport.is_closing() for line in lines] == [False] * 4 + [True] * 4
    assert "3 other requests are already waiting" in caplog.text
    small = rig.connect(echo)
    small.send(request(7))
    assert small.replies == [7]


@pytest.mark.spec("NET-12")
async def test_replies_that_wait_for_an_earlier_one_stop_the_reading_when_they_are_large() -> None:
    """A peer that asks for much behind a request that waits is given no more than its share."""
    rig, parked = Rig(), Parked()
    line = rig.connect(parked)
    line.send(b"".join(map(request, range(4))))
    for number in (1, 2):
        parked.answer(number, bytes(UNSENT_PAUSE_BYTES * 2 // 3))
    await a_pass()
    assert rig.network.replies.total > UNSENT_PAUSE_BYTES
    with pytest.raises(Unread):
        line.send(request(4) + request(5))
        line.send(request(6))
    assert 5 not in parked.slots
    parked.answer(0)
    await a_pass()
    assert line.replies == [0, 1, 2]
    await a_pass()
    assert 4 in parked.slots, "it goes on when they have left"
    assert rig.network.replies.total == 0


async def test_of_many_whose_replies_wait_the_one_with_the_most_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig, parked = Rig(NetLimits(reply_memory_bytes=2_000_000)), Parked()
    lines = [rig.connect(parked) for _ in range(3)]
    for number, line in enumerate(lines):
        line.send(request(10 * number) + request(10 * number + 1))
        parked.answer(10 * number + 1, bytes(600_000 + 100_000 * (number == 1)))
        await a_pass()
    lines[0].send(request(2))
    parked.answer(2, bytes(200_000))
    await a_pass()
    await a_pass()
    assert [line.transport.is_closing() for line in lines] == [True, False, False]
    assert "the limit is 2000000" in caplog.text
    assert rig.network.replies.total < 2_000_000
