"""The quick way in, and what a record has to be."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from ottla.client.errors import UserError
from ottla.client.interceptors import ProducerInterceptor, ProducerRecord
from ottla.client.partitioners import partition_of
from ottla.client.producer.buffer.record_intake import Hooks
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.send_path import SendPath, checked_record
from tests.client.producer.broker_rig import producing
from tests.client.producer.rig import STAMP_NS, config
from tests.fakes.manual_time import ManualClock
from tests.fakes.scripted_broker import ScriptedBroker


@pytest.mark.spec("PRD-10")
def test_headers_cannot_be_changed_once_they_are_given() -> None:
    given = [("a", b"1")]
    record = checked_record("t", b"", None, headers=given, partition=None, timestamp_ms=None)
    given.append(("b", b"2"))
    assert record.headers == (("a", b"1"),)
    mapped = checked_record("t", b"", None, headers={"x": None}, partition=None, timestamp_ms=None)
    assert mapped.headers == (("x", None),)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"topic": ""}, "topic='': expected a topic name"),
        ({"topic": 5}, "topic=5: expected a topic name"),
        ({"partition": -1}, "partition=-1: expected a number of 0 or more"),
        ({"partition": "1"}, "partition='1'"),
        ({"timestamp_ms": -5}, "timestamp_ms=-5: expected milliseconds since 1970"),
        ({"headers": ["a"]}, "headers: expected pairs"),
        ({"headers": {"a": "text"}}, "headers: expected text and bytes, got 'a': 'text'"),
        ({"headers": 5}, "headers: expected pairs"),
    ],
)
def test_a_part_of_a_record_that_is_wrong_is_named(wrong: dict[str, Any], said: str) -> None:
    whole = {"topic": "t", "partition": None, "timestamp_ms": None, "headers": None, **wrong}
    topic = whole.pop("topic")
    with pytest.raises(UserError) as told:
        checked_record(topic, b"", None, **whole)
    assert said in str(told.value)


@pytest.mark.spec("PRD-12", "PRD-19")
@pytest.mark.real_loop
async def test_the_quick_way_and_the_long_way_fill_the_same_batch_in_order() -> None:
    async with ScriptedBroker() as broker, producing(broker, linger_ms=20_000) as producer:
        for number in range(6):
            headers = [("h", b"")] if number % 2 else None
            await producer.send("t", b"%d" % number, headers=headers)
        await producer.send("t", b"large " * 2_000)
        await producer.flush()
        values = [value for each in broker.arrived for value in each.values]
        assert values[:6] == [b"%d" % number for number in range(6)]
        assert len(values) == 7


@pytest.mark.spec("PRD-14", "PRD-16", "TXN-20")
@pytest.mark.real_loop
async def test_keys_take_the_quick_way_to_the_same_partitions_also_after_some_were_added() -> None:
    async with (
        ScriptedBroker(topics={"t": 3}) as broker,
        producing(broker, linger_ms=20_000, batch_size=400) as producer,
    ):
        keys = [b"%d" % number for number in range(20)]
        for number in range(200):
            await producer.send("t", b"%d" % number, keys[number % 20])
        await producer.flush()
        broker.topics["t"] = 5
        await producer._core.cluster.refresh(["t"])
        for number in range(200, 400):
            await producer.send("t", b"%d" % number, keys[number % 20])
        await producer.flush()
        places = {
            int(value or b""): each.tp.partition for each in broker.arrived for value in each.values
        }
        assert [places[number] for number in range(200)] == [
            partition_of(keys[number % 20], 3) for number in range(200)
        ]
        late = range(300, 400)  # a batch that was open may still be filled
        assert [places[number] for number in late] == [
            partition_of(keys[number % 20], 5) for number in late
        ]
        for partition in range(5):
            mine = [
                int(value or b"")
                for each in broker.arrived
                for value in each.values
                if each.tp.partition == partition
            ]
            assert mine == sorted(mine)


class Notes(ProducerInterceptor):
    def __init__(self) -> None:
        self.seen: list[object] = []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.seen.append(("sent", record.value))
        return record._replace(value=record.value + "!", topic="t")

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        self.seen.append("told" if error is None else type(error).__name__)


@pytest.mark.spec("PRD-05", "PRD-13", "PRD-18")
@pytest.mark.real_loop
async def test_interceptors_come_before_serializers_and_hear_before_callbacks_do() -> None:
    notes = Notes()
    async with (
        ScriptedBroker() as broker,
        producing(
            broker, interceptors=[notes], value_serializer=str.encode, max_request_size=200
        ) as producer,
    ):
        delivery = await producer.send("elsewhere", "text")
        delivery.add_done_callback(lambda done: notes.seen.append("callback"))
        await delivery
        assert notes.seen == [("sent", "text"), "told", "callback"]
        assert broker.arrived[0].values == [b"text!"]
        large = await producer.send("t", "x" * 500)
        assert large.done()
        assert notes.seen[-1] == "RecordTooLarge"


@pytest.mark.spec("MON-24", "PRD-25")
def test_the_time_that_callers_wait_for_memory_is_counted_however_the_wait_ends() -> None:
    clock = ManualClock()
    settings = config(buffer_memory=1_000)
    core = ProducerCore(settings, Hooks(), clock, Random(1), lambda: STAMP_NS)
    path, memory = SendPath(core), core.intake.queues.memory

    def counted() -> tuple[float, float]:
        metrics = core.metrics()
        return metrics["bufferpool-wait-time-ns-total"], metrics["buffer-exhausted-total"]

    with path._waiting(1_000, lambda: None):
        clock.ns += 100
    assert counted() == (0, 0), "granted at once"
    with path._waiting(600, lambda: None):
        clock.ns += 7
        memory.give_back(1_000)
    assert counted() == (7, 0)
    full = pytest.raises(TimeoutError, match=r"buffer.memory \(1000\) is full")
    with full, path._waiting(600, lambda: None):
        clock.ns += 20
        raise TimeoutError
    assert counted() == (27, 1)
    with pytest.raises(asyncio.CancelledError), path._waiting(600, lambda: None):
        clock.ns += 300
        raise asyncio.CancelledError
    assert counted() == (327, 1)
    assert (memory.free, memory.waiting) == (400, 0)
