"""One ordered queue of requests per broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ottla.controller.events import BrokerBehind, Event
from ottla.controller.runtime.broker_requests import Request
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.outbox import QUEUE_MAX, BrokerLink, Outbox
from ottla.controller.state import BrokerState
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerEpoch, BrokerId
from ottla.model.metrics import Registry
from ottla.net.broker_link import LinkReply
from ottla.protocol import wire
from ottla.protocol.interbroker import UPDATE_METADATA
from tests.fakes.virtual_loop import LoopClock

ONE = BrokerState(BrokerId(1), BrokerEpoch(0), ())


def request(broker: BrokerState, epoch: int) -> Request:
    fields: dict[str, object] = {
        "controller_id": 1,
        "controller_epoch": epoch,
        "topic_states": [],
        "live_brokers": [],
    }
    return Request(broker, UPDATE_METADATA, fields, (), {})


class Recorder:
    """A broker that answers, or does not."""

    reply_ms = 30_000

    def __init__(self) -> None:
        self.received: list[object] = []
        self.in_flight = 0
        self.failures = 0
        self.refusals: list[ErrorCode] = []
        self.closed = 0
        self.silent = False

    def open(self, broker: BrokerState) -> BrokerLink:
        return self

    async def ask(self, key: int, fields: wire.Fields, timeout_ms: int) -> LinkReply:
        self.in_flight += 1
        assert self.in_flight == 1, "one request at a time"
        try:
            await asyncio.sleep(1)
            if self.silent:
                await asyncio.Event().wait()
            if self.failures:
                self.failures -= 1
                raise ConnectionResetError
            code = self.refusals.pop(0) if self.refusals else ErrorCode.none
            if code is ErrorCode.none:
                self.received.append(fields["controller_epoch"])
            return LinkReply(8, SimpleNamespace(error_code=code))
        finally:
            self.in_flight -= 1

    def close(self) -> None:
        self.closed += 1


async def outbox(links: Recorder, tasks: asyncio.TaskGroup, events: list[Event]) -> Outbox:
    return Outbox(links, events.append, tasks, ControllerMetrics(Registry(), LoopClock()))


@pytest.mark.spec("CTL-38", "CTL-39", "CTL-40", "MON-17")
async def test_requests_arrive_in_order_one_at_a_time_and_are_repeated_until_answered() -> None:
    links = Recorder()
    links.failures = 2
    async with asyncio.TaskGroup() as tasks:
        box = await outbox(links, tasks, [])
        box.update({ONE.id: ONE})
        box.send(request(ONE, epoch) for epoch in (1, 2, 3))
        await asyncio.sleep(60)
        box.close()
    assert links.received == [1, 2, 3]
    assert links.closed == 1


@pytest.mark.spec("CTL-24", "CTL-39")
@pytest.mark.parametrize("code", [ErrorCode.stale_controller_epoch, ErrorCode.stale_broker_epoch])
async def test_a_request_refused_for_a_stale_epoch_is_not_delivered_and_holds_up_the_next(
    code: ErrorCode,
) -> None:
    links = Recorder()
    links.refusals = [code] * 3
    async with asyncio.TaskGroup() as tasks:
        box = await outbox(links, tasks, [])
        box.update({ONE.id: ONE})
        box.send(request(ONE, epoch) for epoch in (1, 2))
        await asyncio.sleep(60)
        box.close()
    assert links.refusals == []
    assert links.received == [1, 2]


@pytest.mark.spec("CTL-40", "CTL-43")
async def test_queues_follow_the_live_brokers_and_a_restarted_one_gets_a_new_queue() -> None:
    links = Recorder()
    links.silent = True
    again = BrokerState(ONE.id, BrokerEpoch(9), ())
    async with asyncio.TaskGroup() as tasks:
        box = await outbox(links, tasks, [])
        box.update({ONE.id: ONE})
        box.send([request(ONE, 1)])
        await asyncio.sleep(5)
        box.update({again.id: again})
        await asyncio.sleep(0)
        assert links.closed == 1
        links.silent = False
        box.send([request(again, 2)])
        await asyncio.sleep(5)
        box.close()
    assert links.received == [2], "what the dead one had not heard is not for the new one"


@pytest.mark.spec("CTL-38")
async def test_a_broker_too_far_behind_loses_its_queue_and_the_controller_hears_of_it() -> None:
    links, events = Recorder(), list[Event]()
    links.silent = True
    async with asyncio.TaskGroup() as tasks:
        box = await outbox(links, tasks, events)
        box.update({ONE.id: ONE})
        box.send(request(ONE, epoch) for epoch in range(QUEUE_MAX))
        assert events == []
        box.send([request(ONE, 0)])
        assert events == [BrokerBehind(ONE.id)]
        box.close()


@pytest.mark.spec("CTL-76")
@pytest.mark.parametrize(("others_reply", "heard_after_ms"), [(True, 50), (False, 100)])
async def test_a_broker_that_shuts_down_hears_last_but_does_not_wait_for_the_others_for_long(
    others_reply: bool, heard_after_ms: int
) -> None:
    two = BrokerState(BrokerId(2), BrokerEpoch(0), ())
    began_ms = LoopClock().mono_ms()
    heard: dict[int, int] = {}

    class Links:
        reply_ms = 30_000

        def open(self, broker: BrokerState) -> BrokerLink:
            return Link(broker)

    class Link:
        def __init__(self, broker: BrokerState) -> None:
            self.broker = broker

        async def ask(self, key: int, fields: wire.Fields, timeout_ms: int) -> LinkReply:
            heard[self.broker.id] = LoopClock().mono_ms() - began_ms
            if self.broker is two:
                await asyncio.sleep(0.05 if others_reply else 60)
            return LinkReply(8, SimpleNamespace(error_code=ErrorCode.none))

        def close(self) -> None:
            return

    async with asyncio.TaskGroup() as tasks:
        box = Outbox(Links(), lambda _: None, tasks, ControllerMetrics(Registry(), LoopClock()))
        box.update({ONE.id: ONE, two.id: two}, {ONE.id})
        box.send([request(ONE, 1), request(two, 1)])
        await asyncio.sleep(1)
        box.close()
    assert heard == {two.id: 0, ONE.id: heard_after_ms}
