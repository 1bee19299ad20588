"""A producer that repeats itself is answered as if it did not, only sooner."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.api.express import MISSES_MAX, ExpressProduce
from ottla.api.produce import API
from ottla.model.errors import ErrorCode
from ottla.net.request_slot import RequestSlot
from tests.fakes.api_side import Caller, api_side
from tests.fakes.data_side import TOPIC_ID, TP, values_of
from tests.fakes.virtual_loop import run

LONG = bytes(100)  # records shorter than this go the general way in compact encodings


def fields(records: bytes | None, *, topic: str = "t", **more: Any) -> dict[str, Any]:
    partition = {"index": more.get("index", 0), "records": records}
    named = {"name": topic, "topic_id": more.get("topic_id", TOPIC_ID)}
    return {
        "transactional_id": None,
        "acks": more.get("acks", 1),
        "timeout": 1_000,
        "topic_data": [{**named, "partition_data": [partition]}],
    }


class Counting:
    """Stands where a caller's express stands, and counts what it answers."""

    def __init__(self, inner: ExpressProduce) -> None:
        self.inner = inner
        self.answered = 0

    def __call__(self, frame: memoryview, slot: RequestSlot) -> bool:
        answered = self.inner(frame, slot)
        self.answered += answered
        return answered

    def missed(self) -> bool:
        return self.inner.missed()


def counted(caller: Caller) -> Counting:
    assert isinstance(caller.peer.express, ExpressProduce)
    counting = Counting(caller.peer.express)
    caller.peer.express = counting
    return counting


@pytest.mark.spec("WIRE-10", "WIRE-12", "WIRE-13")
@pytest.mark.parametrize("version", [7, 9, 10, 11, 12, 13])
def test_the_third_request_is_answered_without_being_decoded(version: int) -> None:
    async def story() -> None:
        async with api_side() as side:
            await side.data.lead()
            records = side.data.batch(LONG)
            await side.caller.ask(API, version, **fields(records))
            express = counted(side.caller)
            for base in (1, 2):
                said = await side.caller.ask(API, version, **fields(records))
                one = said.responses[0].partition_responses[0]
                assert (one.error_code, one.base_offset) == (ErrorCode.none, base)
                assert (one.index, one.log_start_offset) == (0, 0)
            assert express.answered == 2
            assert values_of(await side.data.read()) == [LONG] * 3

    run(story())


@pytest.mark.spec("WIRE-12")
def test_what_is_wrong_with_a_later_request_is_said_as_ever() -> None:
    async def story() -> None:
        async with api_side() as side:
            await side.data.lead()
            records = side.data.batch(LONG)
            await side.caller.ask(API, 12, **fields(records))
            express = counted(side.caller)
            for broken, code in (
                (fields(records[:-1] + b"?"), ErrorCode.corrupt_message),
                (fields(records, index=7), ErrorCode.unknown_topic_or_partition),
                (fields(records[:-1]), ErrorCode.invalid_record),
            ):
                said = await side.caller.ask(API, 12, **broken)
                assert said.responses[0].partition_responses[0].error_code is code
            assert express.answered == 0
            said = await side.caller.ask(API, 12, **fields(records))
            assert said.responses[0].partition_responses[0].base_offset == 1

    run(story())


def test_a_topic_made_again_under_its_name_is_another_one_by_id() -> None:
    async def story() -> None:
        async with api_side() as side:
            await side.data.lead()
            records = side.data.batch(LONG)
            await side.caller.ask(API, 13, **fields(records))
            express = counted(side.caller)
            side.data.hosted.get(TP).log.restore(topic_id=UUID(int=5))
            await side.caller.ask(API, 13, **fields(records))
            assert express.answered == 0

    run(story())


def test_a_disk_that_fails_is_a_storage_error() -> None:
    async def story() -> None:
        async with api_side(dirs=("/a", "/b")) as side:
            await side.data.lead()
            records = side.data.batch(LONG)
            await side.caller.ask(API, 12, **fields(records))
            side.data.disk.capacity_bytes = 0
            said = await side.caller.ask(API, 12, **fields(records))
            code = said.responses[0].partition_responses[0].error_code
            assert code is ErrorCode.kafka_storage_error

    run(story())


def test_a_producer_that_turns_to_another_topic_is_learnt_anew() -> None:
    async def story() -> None:
        async with api_side() as side:
            await side.data.lead()
            records = side.data.batch(LONG)
            await side.caller.ask(API, 12, **fields(records, acks=-1))
            learnt = side.caller.peer.express
            for _ in range(MISSES_MAX + 1):
                await side.caller.ask(API, 12, **fields(records))
            assert side.caller.peer.express is not learnt
            express = counted(side.caller)
            await side.caller.ask(API, 12, **fields(records))
            assert express.answered == 1

    run(story())


@pytest.mark.parametrize("other", [{"topic": "__consumer_offsets"}, {"acks": 0}])
def test_what_is_always_refused_or_never_answered_is_not_learnt(other: dict[str, Any]) -> None:
    async def story() -> None:
        async with api_side() as side:
            await side.data.lead()
            side.caller.start(API, 12, **fields(side.data.batch(LONG), **other))
            assert side.caller.peer.express is None

    run(story())
