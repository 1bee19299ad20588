"""A producer that repeats itself is answered as if it did not, only sooner."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from ottla.api.fast_path.produce import MISSES_MAX, FastProduce
from ottla.api.produce import API
from ottla.model.errors import ErrorCode
from ottla.net.request_slot import Answer, RequestSlot
from tests.fakes.api_side import ApiSide, Caller, api_side
from tests.fakes.data_side import ME, OTHER, TOPIC_ID, TP, values_of

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


class GeneralHandler:
    """Counts the requests that the fast path hands on."""

    def __init__(self, inner: Answer) -> None:
        self.inner = inner
        self.requests = 0

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        self.requests += 1
        self.inner(frame, slot)


def counted(caller: Caller) -> GeneralHandler:
    fast = caller.peer.answer
    assert isinstance(fast, FastProduce)
    general = GeneralHandler(fast.general)
    fast.general = general
    return general


@pytest.mark.spec("WIRE-10", "WIRE-12", "WIRE-13")
@pytest.mark.parametrize("version", [7, 9, 10, 11, 12, 13])
async def test_the_third_request_is_answered_without_being_decoded(version: int) -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(LONG)
        await side.caller.ask(API, version, **fields(records))
        general = counted(side.caller)
        for base in (1, 2):
            said = await side.caller.ask(API, version, **fields(records))
            one = said.responses[0].partition_responses[0]
            assert (one.error_code, one.base_offset) == (ErrorCode.none, base)
            assert (one.index, one.log_start_offset) == (0, 0)
        assert general.requests == 0
        assert values_of(await side.data.read()) == [LONG] * 3


@pytest.mark.spec("WIRE-12")
async def test_what_is_wrong_with_a_later_request_is_said_as_ever() -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(LONG)
        await side.caller.ask(API, 12, **fields(records))
        general = counted(side.caller)
        for broken, code in (
            (fields(records[:-1] + b"?"), ErrorCode.corrupt_message),
            (fields(records, index=7), ErrorCode.unknown_topic_or_partition),
            (fields(records[:-1]), ErrorCode.invalid_record),
        ):
            said = await side.caller.ask(API, 12, **broken)
            assert said.responses[0].partition_responses[0].error_code is code
        assert general.requests == 3
        said = await side.caller.ask(API, 12, **fields(records))
        assert said.responses[0].partition_responses[0].base_offset == 1


async def test_a_topic_made_again_under_its_name_is_another_one_by_id() -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(LONG)
        await side.caller.ask(API, 13, **fields(records))
        general = counted(side.caller)
        side.data.hosted.get(TP).log.restore(topic_id=UUID(int=5))
        await side.caller.ask(API, 13, **fields(records))
        assert general.requests == 1


async def test_a_disk_that_fails_is_a_storage_error() -> None:
    async with api_side(dirs=("/a", "/b")) as side:
        await side.data.lead()
        records = side.data.batch(LONG)
        await side.caller.ask(API, 12, **fields(records))
        side.data.disk.capacity_bytes = 0
        said = await side.caller.ask(API, 12, **fields(records))
        code = said.responses[0].partition_responses[0].error_code
        assert code is ErrorCode.kafka_storage_error


async def test_a_producer_that_turns_to_another_topic_is_learnt_anew() -> None:
    async with api_side() as side:
        await side.data.lead()
        records = side.data.batch(LONG)
        await side.caller.ask(API, 12, **fields(records, acks=-1))
        learnt = side.caller.peer.answer
        for _ in range(MISSES_MAX + 1):
            await side.caller.ask(API, 12, **fields(records))
        assert side.caller.peer.answer is not learnt
        general = counted(side.caller)
        await side.caller.ask(API, 12, **fields(records))
        assert general.requests == 0


@pytest.mark.parametrize("other", [{"topic": "__consumer_offsets"}, {"acks": 0}])
async def test_what_is_always_refused_or_never_answered_is_not_learnt(
    other: dict[str, Any],
) -> None:
    async with api_side() as side:
        await side.data.lead()
        side.caller.start(API, 12, **fields(side.data.batch(LONG), **other))
        assert side.caller.peer.answer is side.dispatch


async def produced_fast(side: ApiSide, acks: int) -> bool:
    """Whether a second batch is acknowledged on the fast path."""
    records = side.data.batch(LONG)
    await side.caller.ask(API, 12, **fields(records, acks=1))
    await side.caller.ask(API, 12, **fields(records, acks=acks))
    caller = side.another()
    caller.start(API, 12, **fields(records, acks=acks))
    general = counted(caller)
    caller.start(API, 12, **fields(records, acks=acks))
    return general.requests == 0


@pytest.mark.spec("WIRE-11", "WIRE-13", "REP-59")
@pytest.mark.parametrize("acks", [1, -1])
async def test_a_batch_is_readable_and_counted_when_it_is_acknowledged(acks: int) -> None:
    async with api_side({"flush.before.ack": "never"}) as side:
        await side.data.lead()
        records = side.data.batch(LONG, LONG)
        await side.caller.ask(API, 12, **fields(records, acks=acks))
        general = counted(side.caller)
        waiting = side.data.start_fetch(2, max_wait_ms=1_000)
        reply = await side.caller.ask(API, 12, **fields(records, acks=acks))
        assert reply.responses[0].partition_responses[0].base_offset == 2
        assert general.requests == 0
        assert waiting.done(), "a delayed fetch is completed"
        assert values_of(await side.data.read(2)) == [LONG, LONG]
        assert side.data.hosted.get(TP).log.high_watermark == 4
        for name in ("", "all_topics_"):
            labels = {} if name else {"topic": "t"}
            group = f"kafka_server_brokertopicmetrics_{name}"
            assert side.data.count(f"{group}messages_in_total", **labels) == 4
            assert side.data.count(f"{group}bytes_in_total", **labels) == 2 * len(records)
            assert side.data.count(f"{group}total_produce_requests_total", **labels) == 2


@pytest.mark.spec("REP-59", "REP-63")
async def test_acks_all_waits_for_followers_on_the_general_path() -> None:
    async with api_side({"flush.before.ack": "never"}) as side:
        await side.data.lead(replicas=(ME, OTHER))
        assert await produced_fast(side, acks=1)
        assert side.data.hosted.get(TP).log.high_watermark == 0, "the follower has nothing yet"
    async with api_side({"flush.before.ack": "never"}) as side:
        await side.data.lead(replicas=(ME, OTHER))
        records = side.data.batch(LONG)
        await side.caller.ask(API, 12, **fields(records, acks=1))
        caller = side.another()
        replies = [caller.start(API, 12, **fields(records, acks=-1)) for _ in range(2)]
        assert not any(reply.done() for reply in replies)


async def test_a_flush_before_the_acknowledgement_is_waited_for_on_the_general_path() -> None:
    async with api_side({"flush.before.ack": "auto"}) as side:
        await side.data.lead()
        assert await produced_fast(side, acks=1)
        records = side.data.batch(LONG)
        caller = side.another()
        replies = [caller.start(API, 12, **fields(records, acks=-1)) for _ in range(2)]
        assert not any(reply.done() for reply in replies)
        await asyncio.gather(*replies)


async def test_a_partition_that_another_broker_leads_is_refused_as_ever() -> None:
    async with api_side() as side:
        await side.data.lead()
        assert await produced_fast(side, acks=1)
        await side.data.follow(epoch=9)
        reply = await side.caller.ask(API, 12, **fields(side.data.batch(LONG)))
        code = reply.responses[0].partition_responses[0].error_code
        assert code is ErrorCode.not_leader_or_follower
