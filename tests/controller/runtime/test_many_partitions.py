"""Thousands of partitions: decided off the event loop, sent in parts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from ottla.controller.events import NewTopic
from ottla.controller.runtime.broker_requests import PARTITIONS_MAX
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.interbroker import LEADER_AND_ISR
from tests.fakes.control_plane import Node, control_plane, settle, until
from tests.fakes.inline_pool import InlinePool

COUNT = 1_000


class Recorder(InlinePool):
    """Remembers which events were decided on a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.events.append(type(args[1]).__name__)
        return super().submit(fn, *args, **kwargs)


def recorded(node: Node) -> Recorder:
    node.loop._pool = recorder = Recorder()
    return recorder


def all_led_by(node: Node, broker: int) -> Callable[[], bool]:
    def check() -> bool:
        found = (node.metadata.image.partition(TopicPartition("t", n)) for n in range(COUNT))
        return all(partition is not None and partition.leader == broker for partition in found)

    return check


@pytest.mark.spec("CTL-26", "CTL-41", "CTL-46")
async def test_the_death_of_a_broker_with_many_leaders_is_decided_off_the_event_loop() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        chosen = dict.fromkeys(range(COUNT), (BrokerId(2), BrokerId(1)))
        await one.controller.create_topics([NewTopic("t", assignment=chosen)], 60_000)
        await until(all_led_by(two, 2))
        of_one = recorded(one)
        plane.wires.frames.clear()
        await plane.kill(2)
        await until(all_led_by(one, 1))
        assert "LiveBrokersChanged" in of_one.events
        parts = plane.wires.frames.count((one.id, LEADER_AND_ISR))
        assert parts == COUNT // PARTITIONS_MAX, "each request is small for its receiver"


@pytest.mark.spec("CTL-17", "CTL-26")
async def test_a_new_controller_of_many_partitions_decides_off_the_event_loop() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await settle()
        chosen = dict.fromkeys(range(COUNT), (BrokerId(1), BrokerId(2)))
        await one.controller.create_topics([NewTopic("t", assignment=chosen)], 60_000)
        of_two = recorded(two)
        await plane.kill(1)
        await until(all_led_by(two, 2))
        assert of_two.events[0] == "Elected"
