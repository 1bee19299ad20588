"""A controller and brokers of other releases, as in the middle of a rolling upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ottla.controller.events import Event, LeaderAndIsrReplied
from ottla.controller.machine import on_event
from ottla.controller.runtime.broker_requests import Request, requests
from ottla.controller.runtime.metrics import ControllerMetrics
from ottla.controller.runtime.outbox import Outbox
from ottla.controller.state import BrokerState
from ottla.model.clock import SystemClock
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerEpoch, BrokerId, TopicPartition
from ottla.model.metrics import Registry
from ottla.net.broker_link import BrokerLink
from ottla.protocol.interbroker import LEADER_AND_ISR, OLDEST_SENT, STOP_REPLICA, UPDATE_METADATA
from tests.controller.transcript import COMMANDS, Actor, topic_id
from tests.fakes.scripted_broker import ScriptedBroker

ONE, TWO = BrokerId(1), BrokerId(2)
T0 = TopicPartition("t", 0)
OURS = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8}
pytestmark = [pytest.mark.real_loop, pytest.mark.spec("WIRE-07")]


def announce(broker: ScriptedBroker, newest: Mapping[int, int]) -> None:
    """The broker says that these are its newest versions."""
    for key, version in newest.items():
        broker.versions[key] = (0, version)


def requests_to_both() -> list[Request]:
    """Leaders, metadata and a deletion, of a controller that was just elected over two brokers."""
    actor, built = Actor(), list[Request]()
    for command in ("elected 4 1 2 t-0=1,2/1/1,2", "delete t"):
        word, *rest = command.split()
        step = on_event(actor.state, COMMANDS[word](actor, rest))
        built += requests(step.state, step.sends)
        actor.run(command)
    return [one._replace(broker=replace(one.broker, epoch=BrokerEpoch(0))) for one in built]


def answer_leaders(request: Any) -> dict[str, object]:
    part = {"partition_index": 0, "error_code": ErrorCode.none}
    topics = [{"topic_id": topic_id("t"), "partition_errors": [part]}]
    return {"error_code": ErrorCode.none, "topics": topics if request.topic_states else []}


def answer_stopped(request: Any) -> dict[str, object]:
    part = {"topic_name": "t", "partition_index": 0, "error_code": ErrorCode.none}
    return {"error_code": ErrorCode.none, "partition_errors": [part]}


class Links:
    """Connections of the controller, to the brokers by their ids."""

    reply_ms = 5_000

    def __init__(self, brokers: Mapping[int, ScriptedBroker]) -> None:
        self._brokers = brokers

    def open(self, broker: BrokerState) -> BrokerLink:
        port = self._brokers[broker.id].port
        return BrokerLink("127.0.0.1", port, SystemClock(), Random(1), "controller")


def versions_of(broker: ScriptedBroker) -> dict[int, set[int]]:
    """In which versions each of the three requests arrived."""
    found: dict[int, set[int]] = {}
    for key, version, _ in broker.asked:
        if key in OURS:
            found.setdefault(key, set()).add(version)
    return found


async def send(
    brokers: Mapping[int, ScriptedBroker], sent: list[Request], until: Any
) -> list[Event]:
    """Through queues and connections of the controller; the events of the replies."""
    events: list[Event] = []
    for broker in brokers.values():
        broker.script(LEADER_AND_ISR, *[answer_leaders] * 9)
        broker.script(STOP_REPLICA, *[answer_stopped] * 9)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        metrics = ControllerMetrics(Registry(), SystemClock())
        outbox = Outbox(Links(brokers), events.append, tasks, metrics)
        outbox.update({one.broker.id: one.broker for one in sent})
        outbox.send(sent)
        while not until():  # noqa: ASYNC110 (real sockets, nothing tells of it)
            await asyncio.sleep(0.01)
        outbox.close()
    return events


def is_complete(broker: ScriptedBroker) -> bool:
    return versions_of(broker).keys() == OURS.keys()


PEERS = [
    {LEADER_AND_ISR: 5, STOP_REPLICA: 3, UPDATE_METADATA: 7},
    {LEADER_AND_ISR: 6, STOP_REPLICA: 4, UPDATE_METADATA: 7},
    {LEADER_AND_ISR: 5, STOP_REPLICA: 4, UPDATE_METADATA: 8},
    OURS,
    {LEADER_AND_ISR: 9, STOP_REPLICA: 6, UPDATE_METADATA: 12},
]


@pytest.mark.parametrize("newest", PEERS, ids=str)
async def test_each_broker_is_asked_in_the_newest_versions_that_both_sides_know(
    newest: dict[int, int],
) -> None:
    async with ScriptedBroker(1) as older, ScriptedBroker(2) as same:
        announce(older, newest)
        announce(same, OURS)
        both = {1: older, 2: same}
        events = await send(
            both, requests_to_both(), lambda: is_complete(older) and is_complete(same)
        )
        assert versions_of(older) == {key: {min(newest[key], OURS[key])} for key in OURS}
        assert versions_of(same) == {key: {version} for key, version in OURS.items()}
    for id in (ONE, TWO):
        assert LeaderAndIsrReplied(id, BrokerEpoch(0), {T0: ErrorCode.none}) in events
    [led] = {
        (request.controller_epoch, state.leader, state.leader_epoch, tuple(state.isr))
        for broker in both.values()
        for key, _, request in broker.asked
        if key == LEADER_AND_ISR
        for topic in request.topic_states
        for state in topic.partition_states
    }
    assert led[:2] == (4, ONE), "the same leadership in every version"


async def test_a_broker_that_was_upgraded_is_asked_in_its_new_versions_from_then_on() -> None:
    async with ScriptedBroker(1) as broker:
        announce(broker, PEERS[0])
        [request, *_] = [one for one in requests_to_both() if one.broker.id == ONE]
        link = Links({1: broker}).open(request.broker)
        await link.ask(request.key, request.fields, 5_000)
        announce(broker, OURS)
        broker.hang_up()
        async with asyncio.timeout(20):
            while broker.count(request.key) == 1:  # the first one may meet the closed connection
                with suppress(OSError):
                    await link.ask(request.key, request.fields, 5_000)
        link.close()
        assert [version for key, version, _ in broker.asked if key == request.key] == [7, 8]


@pytest.mark.parametrize("key", OURS)
async def test_a_release_too_old_for_topic_ids_is_named_and_the_controller_goes_on(
    key: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with ScriptedBroker(1) as ancient, ScriptedBroker(2) as same:
        announce(ancient, {**OURS, key: OLDEST_SENT[key] - 1})
        announce(same, OURS)
        both = {1: ancient, 2: same}
        named = f"no common version of api {key} with {ancient.address}"
        await send(both, requests_to_both(), lambda: is_complete(same) and named in caplog.text)
        assert key not in versions_of(ancient)
