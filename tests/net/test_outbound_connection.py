"""Calls to another broker: in order, in time, over a connection that comes back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

import pytest

from ottla.model.clock import SystemClock
from ottla.net.listener import RequestSlot
from ottla.net.outbound_connection import OutboundConnection, OutboundLimits, backoff_ms
from tests.fakes.manual_time import ManualClock
from tests.net.frames import number_of, reply, request
from tests.net.loopback import Served, serving, until
from tests.net.rig import Parked, a_pass, echo


@contextlib.asynccontextmanager
async def link_to(
    served: Served, limits: OutboundLimits | None = None
) -> AsyncIterator[OutboundConnection]:
    link = OutboundConnection("127.0.0.1", served.port, SystemClock(), Random(1), limits)
    try:
        yield link
    finally:
        link.close()
        await until(lambda: served.listener.connection_count == 0)


@pytest.mark.real_loop
async def test_calls_made_together_share_one_connection_and_get_their_own_replies() -> None:
    async with serving(echo) as served, link_to(served) as link:
        replies = await asyncio.gather(*(link.call(request(n)) for n in range(50)))
        assert [bytes(each) for each in replies] == [reply(n)[4:] for n in range(50)]
        assert served.listener.connection_count == 1


@pytest.mark.real_loop
async def test_no_more_calls_than_the_bound_are_under_way() -> None:
    parked = Parked()

    async with serving(parked) as served:
        limits = OutboundLimits(max_inflight_requests=2)
        async with link_to(served, limits) as link, asyncio.TaskGroup() as tasks:
            calls = [tasks.create_task(link.call(request(n))) for n in range(3)]
            await until(lambda: len(parked.slots) == 2)
            for _ in range(5):
                await a_pass()
            assert sorted(parked.slots) == [0, 1]
            parked.answer(0)
            await until(lambda: 2 in parked.slots)
            parked.answer(1)
            parked.answer(2)
        assert [bytes(call.result()) for call in calls] == [reply(n)[4:] for n in range(3)]


@pytest.mark.real_loop
async def test_a_call_that_times_out_closes_the_connection_and_the_next_call_reconnects() -> None:
    parked = Parked()

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        parked(frame, slot) if number_of(frame) < 2 else echo(frame, slot)

    async with serving(answer) as served, link_to(served) as link:
        late, behind = await asyncio.gather(
            link.call(request(0), timeout_ms=20),
            link.call(request(1)),
            return_exceptions=True,
        )
        assert isinstance(late, TimeoutError)
        assert isinstance(behind, ConnectionError)
        assert "no reply from" in str(behind)
        assert bytes(await link.call(request(2))) == reply(2)[4:]


@pytest.mark.real_loop
async def test_a_call_that_was_given_up_does_not_disturb_the_one_behind_it() -> None:
    parked = Parked()

    async with serving(parked) as served, link_to(served) as link, asyncio.TaskGroup() as tasks:
        given_up = tasks.create_task(link.call(request(0)))
        kept = tasks.create_task(link.call(request(1)))
        await until(lambda: len(parked.slots) == 2)
        given_up.cancel()
        await a_pass()
        parked.answer(0)
        parked.answer(1)
        assert bytes(await kept) == reply(1)[4:]


@pytest.mark.parametrize("wrong", [reply(99), reply(0) + reply(1), b"\xff\xff\xff\xff"])
@pytest.mark.real_loop
async def test_a_reply_that_cannot_be_right_ends_the_connection(wrong: bytes) -> None:
    parked = Parked()

    def answer(frame: memoryview, slot: RequestSlot) -> None:
        parked(frame, slot)
        slot.reply([wrong])

    async with serving(answer) as served, link_to(served) as link:
        with contextlib.suppress(ConnectionError):
            assert bytes(await link.call(request(0))) == reply(0)[4:]
            assert wrong.startswith(reply(0)), "anything else is no answer to this"
        await until(lambda: served.listener.connection_count == 0)


@pytest.mark.real_loop
async def test_a_peer_that_is_not_there_is_an_error_and_is_tried_again_after_a_pause() -> None:
    async with serving(echo) as served:
        port = served.port
    link = OutboundConnection(
        "127.0.0.1", port, SystemClock(), Random(1), OutboundLimits(reconnect_backoff_ms=4)
    )
    for _ in range(3):
        with pytest.raises(OSError):
            await link.call(request(0))
    with pytest.raises(OSError):  # waits out its pause within the time it has
        await link.call(request(0), timeout_ms=5_000)
    link.close()
    with pytest.raises(ConnectionError, match="was closed locally"):
        await link.call(request(0))


def test_the_pause_doubles_up_to_its_bound_and_differs_between_peers() -> None:
    limits = OutboundLimits(reconnect_backoff_ms=50, reconnect_backoff_max_ms=1_000)
    assert backoff_ms(0, limits, Random(1)) == 0
    for failures, ceiling in ((1, 50), (2, 100), (3, 200), (6, 1_000), (60, 1_000)):
        drawn = {backoff_ms(failures, limits, Random(seed)) for seed in range(50)}
        assert max(drawn) <= ceiling
        assert min(drawn) >= ceiling // 2
        assert len(drawn) > 1


@pytest.mark.real_loop
async def test_a_login_is_renewed_on_a_new_connection_before_it_expires() -> None:
    clock, handshakes, parked = ManualClock(1_000), [], Parked()

    async def handshake(_: object) -> int:
        handshakes.append(clock.mono_ms())
        return 60_000

    async with serving(parked) as served:
        link = OutboundConnection("127.0.0.1", served.port, clock, Random(1), handshake=handshake)
        first = asyncio.ensure_future(link.call(request(1)))
        await until(lambda: 1 in parked.slots)
        clock.ns += 58_000 * 1_000_000
        assert link.post([request(9)]) is None, "nothing more is sent on it"
        second = asyncio.ensure_future(link.call(request(2)))
        await a_pass()
        parked.answer(1)
        assert await first == reply(1)[4:], "what was sent is answered"
        await until(lambda: 2 in parked.slots)
        parked.answer(2)
        assert await second == reply(2)[4:]
        assert handshakes == [1_000, 59_000]
        link.close()
        await until(lambda: served.listener.connection_count == 0)
