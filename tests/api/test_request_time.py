"""Request time: what of a request counts as a share of the event loop, and what does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from ottla.api import fetch, heartbeat, produce
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.dispatch import Dispatch
from ottla.api.fast_path.produce import FastProduce
from ottla.delay.rates import KAFKAS_WINDOWS, SampledRate
from ottla.model.clock import MonoMs, WallMs
from ottla.model.errors import ErrorCode
from ottla.net.request_slot import RequestSlot
from ottla.security.acl import Kind, Operation
from ottla.security.authorizer import Authorizer, Requester
from ottla.security.quotas.entities import QuotaEntity
from tests.fakes.api_side import ApiSide, Caller, api_side
from tests.fakes.data_side import ME, OTHER
from tests.fakes.manual_time import ManualClock
from tests.raw_requests import fetch_fields

pytestmark = pytest.mark.spec("SEC-07")
WORK_MS: Final = 20
SHARE: Final = 2.0
"""Percent of a second that 20 ms are."""
WAIT_MS: Final = 700
BEAT: Final[dict[str, Any]] = {
    "group_id": "g",
    "generation_id": 1,
    "member_id": "m",
    "group_instance_id": None,
}


class BusyClock(ManualClock):
    """Moved by work alone, and by `wait`; reading the date is work while `dates_take_ms` is set."""

    dates_take_ms = 0

    def work(self, ms: int = WORK_MS) -> None:
        self.ns += ms * 1_000_000

    def wall_ms(self) -> WallMs:
        self.work(self.dates_take_ms)
        return super().wall_ms()


class SlowAuthorizer(Authorizer):
    """Each decision takes its time."""

    def __init__(self, clock: BusyClock) -> None:
        super().__init__()
        self.in_force = True
        self._clock = clock

    def allows(
        self,
        requester: Requester,
        operation: Operation,
        kind: Kind,
        name: str,
        *,
        log_denial: bool = True,
    ) -> bool:
        self._clock.work()
        return True


class RecordedShares(SampledRate):
    """Remembers what was recorded."""

    def __init__(self) -> None:
        super().__init__(KAFKAS_WINDOWS)
        self.values: list[float] = []

    def record(self, value: float, now_ms: MonoMs) -> None:
        self.values.append(value)
        super().record(value, now_ms)


class TimedCaller(Caller):
    """A connection that notes when the call that starts a request begins and ends."""

    def __init__(self, dispatch: Dispatch, clock: BusyClock) -> None:
        super().__init__(dispatch)
        self._clock = clock
        self.spent_ms = 0  # in the call that started the last request

    def send(self, frame: bytes | bytearray) -> asyncio.Future[bytes]:
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        now_ns = self._clock.mono_ns()
        slot = RequestSlot(self, int.from_bytes(frame[4:6], "big"), now_ns, now_ns)
        self._waiting[slot] = reply
        self.peer.answer(memoryview(frame)[4:], slot)
        slot.local_ns = self._clock.mono_ns()
        self.spent_ms = (slot.local_ns - now_ns) // 1_000_000
        return reply


class Measured:
    """A client with a quota of request time, and all that was recorded of it."""

    def __init__(self, side: ApiSide, clock: BusyClock, *apis: Api, guarded: bool) -> None:
        quotas = side.services.shared.quotas
        quotas.follow({QuotaEntity(None, "caller"): {"request_percentage": 1_000.0}})
        usage = quotas.usage_of("User:ANONYMOUS", "caller", clock.mono_ms()).request
        assert usage is not None
        self._shares = usage.rate = RecordedShares()
        services = replace(
            side.services,
            broker=side.services.broker._replace(clock=clock),
            authorizer=SlowAuthorizer(clock) if guarded else side.services.authorizer,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        served = {api.key: api for api in (produce.API, fetch.API, *apis)}
        self.caller = TimedCaller(Dispatch(services, self._spawn, served), clock)
        self.side, self.clock = side, clock

    def _spawn(self, work: Any) -> object:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def share(self) -> float:
        """Percent of a second, since it was asked for last."""
        values, self._shares.values = self._shares.values, []
        return sum(values)


@asynccontextmanager
async def measured(*apis: Api, guarded: bool = False) -> AsyncIterator[Measured]:
    async with api_side({"flush.before.ack": "never"}) as side:
        yield Measured(side, BusyClock(10_000), *apis, guarded=guarded)


async def never(request: Request, ctx: Context) -> Fields:
    raise AssertionError("it is answered at once")


def produce_fields(records: bytes, acks: int = 1) -> dict[str, Any]:
    partition = {"index": 0, "records": records}
    topic = {"name": "t", "partition_data": [partition]}
    return {"transactional_id": None, "acks": acks, "timeout": 10_000, "topic_data": [topic]}


async def test_of_a_request_that_is_answered_at_once_its_handling_counts() -> None:
    def beat(request: Request, ctx: Context, done: Callable[[Fields], None]) -> bool:
        here.clock.work()
        done({"error_code": ErrorCode.none})
        here.clock.work()  # as the reply is encoded: no more counts
        return True

    async with measured(replace(heartbeat.API, handler=never, at_once=beat)) as here:
        for _ in range(2):
            await here.caller.ask(heartbeat.API, **BEAT)
            assert here.share == pytest.approx(SHARE)


async def test_of_a_task_each_step_counts_and_nothing_while_it_waits() -> None:
    go_on = asyncio.Event()

    async def beat(request: Request, ctx: Context) -> Fields:
        here.clock.work()
        await go_on.wait()
        here.clock.work()
        return {"error_code": ErrorCode.none}

    async with measured(replace(heartbeat.API, handler=beat)) as here:
        reply = here.caller.start(heartbeat.API, **BEAT)
        await asyncio.sleep(0)
        assert here.share == pytest.approx(SHARE)
        here.clock.work(WAIT_MS)  # others' work
        await asyncio.sleep(0)
        assert here.share == 0
        go_on.set()
        await reply
        assert here.share == pytest.approx(SHARE)


async def test_a_task_that_fails_counts_up_to_its_failure() -> None:
    async def beat(request: Request, ctx: Context) -> Fields:
        here.clock.work()
        raise ValueError("a bug")

    async with measured(replace(heartbeat.API, handler=beat)) as here:
        reply = await here.caller.ask(heartbeat.API, **BEAT)
        assert reply.error_code is ErrorCode.unknown_server_error
        assert here.share == pytest.approx(SHARE)


async def test_of_a_produce_on_the_fast_path_its_appending_counts() -> None:
    async with measured() as here:
        await here.side.data.lead()
        fields = produce_fields(here.side.data.batch(bytes(1_000)))
        await here.caller.ask(produce.API, 12, **fields)
        assert isinstance(here.caller.peer.answer, FastProduce)
        assert here.share == 0
        here.clock.dates_take_ms = WORK_MS  # of the batch that is checked
        await here.caller.ask(produce.API, 12, **fields)
        assert here.share == pytest.approx(SHARE)


async def test_of_a_produce_that_waits_for_replicas_its_start_counts() -> None:
    async with measured(guarded=True) as here:
        await here.side.data.lead(replicas=(ME, OTHER))
        fields = produce_fields(here.side.data.batch(b"value"), acks=-1)
        reply = here.caller.start(produce.API, 12, **fields)
        assert not reply.done()
        started_share = here.caller.spent_ms / 10
        here.clock.work(WAIT_MS)
        await reply  # refused after its timeout
        assert here.share == pytest.approx(started_share)
        assert started_share >= SHARE


async def test_of_a_fetch_its_reading_counts() -> None:
    async with measured(guarded=True) as here:
        await here.side.data.lead()
        await here.side.data.append(b"value")
        await here.caller.ask(fetch.API, 12, **fetch_fields("t"))
        assert here.share == pytest.approx(SHARE)


async def test_of_a_fetch_that_waits_for_records_its_start_counts() -> None:
    async with measured(guarded=True) as here:
        await here.side.data.lead()
        wanted = {**fetch_fields("t"), "max_wait": timedelta(seconds=5)}
        reply = here.caller.start(fetch.API, 12, **wanted)
        assert not reply.done()
        assert here.share == 0, "it counts when it is answered"
        here.clock.work(WAIT_MS)
        await here.side.data.append(b"value")
        await reply
        assert here.share == pytest.approx(SHARE)
