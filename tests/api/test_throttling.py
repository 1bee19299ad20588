"""What a client used beyond its quota is a throttle time in the reply and a muted connection."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from ottla.api import fetch, list_offsets, produce
from ottla.api.fast_path.produce import FastProduce
from ottla.broker.metrics_server import render
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode
from ottla.model.metrics import Registry
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from ottla.security.quotas.metrics import register_metrics
from tests.fakes.api_side import ApiSide, api_side
from tests.fakes.data_side import ME, OTHER, values_of
from tests.raw_requests import fetch_fields

LONG = bytes(1000)


def limit(side: ApiSide, **quotas: float) -> None:
    side.services.shared.quotas.follow({QuotaEntity(None, "caller"): quotas})


def fields(records: bytes, acks: int = 1) -> dict[str, Any]:
    partition = {"index": 0, "records": records}
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout": 1_000,
        "topic_data": [{"name": "t", "partition_data": [partition]}],
    }


def throttle_ms(reply: Any) -> int:
    return int(reply.throttle_time / timedelta(milliseconds=1))


@pytest.mark.spec("SEC-07", "WIRE-14", "MON-08")
@pytest.mark.parametrize("version", [7, 8, 9, 12])
async def test_produce_beyond_the_quota_is_stored_and_throttled(version: int) -> None:
    async with api_side() as side:
        await side.data.lead()
        limit(side, producer_byte_rate=100.0)
        records = side.data.batch(LONG)
        delays = []
        for _ in range(3):
            reply = await side.caller.ask(produce.API, version, **fields(records))
            assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none
            delays.append(throttle_ms(reply))
        assert delays[0] > 0 or delays[1] > 0
        assert delays[2] > delays[1] >= delays[0]
        assert side.caller.throttled_ms == delays[2]
        assert values_of(await side.data.read()) == [LONG] * 3


@pytest.mark.spec("SEC-07")
async def test_the_fast_path_is_used_and_throttled_and_follows_new_quotas() -> None:
    async with api_side() as side:
        await side.data.lead()
        limit(side, producer_byte_rate=1e9)
        records = side.data.batch(LONG)
        await side.caller.ask(produce.API, 12, **fields(records))
        fast = side.caller.peer.answer
        assert isinstance(fast, FastProduce)
        reply = await side.caller.ask(produce.API, 12, **fields(records))
        assert throttle_ms(reply) == 0
        limit(side, producer_byte_rate=10.0)
        await side.caller.ask(produce.API, 12, **fields(records))
        assert side.caller.peer.answer is not fast, "remembered again, with the new quota"
        reply = await side.caller.ask(produce.API, 12, **fields(records))
        assert throttle_ms(reply) > 10_000
        side.services.shared.quotas.follow({})
        await side.caller.ask(produce.API, 12, **fields(records))
        reply = await side.caller.ask(produce.API, 12, **fields(records))
        assert throttle_ms(reply) == 0


@pytest.mark.spec("SEC-07")
async def test_a_fetch_beyond_the_quota_gets_nothing_and_what_it_did_not_get_is_not_counted() -> (
    None
):
    async with api_side() as side:
        await side.data.lead()
        await side.data.append(*[LONG] * 9)
        limit(side, consumer_byte_rate=1_000.0)  # ten windows: 10,000 bytes at once
        first = await side.caller.ask(fetch.API, 12, **fetch_fields("t"))
        assert first.responses[0].partitions[0].records
        assert throttle_ms(first) == 0
        second = await side.caller.ask(fetch.API, 12, **fetch_fields("t"))
        assert throttle_ms(second) > 0
        assert not second.responses
        third = await side.caller.ask(fetch.API, 12, **fetch_fields("t"))
        assert throttle_ms(third) == throttle_ms(second)


@pytest.mark.spec("SEC-07")
async def test_request_time_is_a_share_of_the_event_loop() -> None:
    async with api_side() as side:
        await side.data.lead()
        limit(side, request_percentage=1.0)
        clock = side.services.broker.clock
        usage = side.services.shared.quotas.usage_of("User:ANONYMOUS", "caller", MonoMs(0)).request
        assert usage is not None
        usage.record(50.0, clock.mono_ms())
        partition = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
        asked = {
            "replica_id": -1,
            "isolation_level": 0,
            "topics": [{"name": "t", "partitions": [partition]}],
        }
        reply = await side.caller.ask(list_offsets.API, 6, **asked)
        assert throttle_ms(reply) == 1_000, "at most one window"


async def test_brokers_are_never_throttled() -> None:
    async with api_side() as side:
        await side.data.lead()
        limit(side, producer_byte_rate=1.0)
        side.caller.peer.is_broker = True
        for _ in range(3):
            reply = await side.caller.ask(produce.API, 12, **fields(side.data.batch(LONG)))
            assert throttle_ms(reply) == 0


async def test_another_client_is_not_throttled() -> None:
    async with api_side() as side:
        await side.data.lead()
        side.services.shared.quotas.follow(
            {QuotaEntity(None, "greedy"): {"producer_byte_rate": 1.0}}
        )
        for _ in range(3):
            reply = await side.caller.ask(produce.API, 12, **fields(side.data.batch(LONG)))
            assert throttle_ms(reply) == 0


async def test_without_a_reply_a_request_is_not_throttled_for_its_time() -> None:
    async with api_side() as side:
        await side.data.lead()
        limit(side, request_percentage=0.0)
        side.caller.start(produce.API, 12, **fields(side.data.batch(LONG), acks=0))
        assert side.caller.throttled_ms == 0
        await side.caller.ask(produce.API, 12, **fields(side.data.batch(LONG), acks=1))
        assert side.caller.throttled_ms == 1_000


async def test_a_fetch_is_measured_with_all_its_reply() -> None:
    """As in Kafka: many small fetches are not free."""
    async with api_side() as side:
        await side.data.lead()
        limit(side, consumer_byte_rate=1_000.0)
        wanted = {**fetch_fields("t"), "max_wait": timedelta()}
        replies = [await side.caller.ask(fetch.API, 12, **wanted) for _ in range(200)]
        assert throttle_ms(replies[0]) == 0
        assert throttle_ms(replies[-1]) > 0


async def test_a_fetch_does_not_wait_for_more_than_its_quota_allows_at_once() -> None:
    async with api_side() as side:
        await side.data.lead()
        await side.data.append(*[LONG] * 20)
        limit(side, consumer_byte_rate=1_000.0)
        wanted = {**fetch_fields("t"), "min_bytes": 1 << 20, "max_wait": timedelta(seconds=30)}
        reply = side.caller.start(fetch.API, 12, **wanted)
        assert reply.done(), "10,000 bytes are there"
        await reply


async def test_followers_fetch_as_much_as_they_can_whatever_quotas_there_are() -> None:
    async with api_side() as side:
        await side.data.lead(replicas=(ME, OTHER))
        await side.data.append(*[LONG] * 20)
        side.services.shared.quotas.follow({QuotaEntity(DEFAULT): {"consumer_byte_rate": 1.0}})
        side.caller.peer.is_broker = True
        reply = await side.caller.ask(fetch.API, 12, **{**fetch_fields("t"), "replica_id": OTHER})
        assert throttle_ms(reply) == 0
        assert len(reply.responses[0].partitions[0].records) > 20 * len(LONG)


async def test_a_producer_is_muted_when_it_exceeds_its_quota_and_not_when_it_is_answered() -> None:
    """With acks=all a reply takes its time: others of the connection would start meanwhile."""
    async with api_side({"flush.before.ack": "never"}) as side:
        await side.data.lead(replicas=(ME, OTHER))
        limit(side, producer_byte_rate=10.0)
        reply = side.caller.start(produce.API, 12, **fields(side.data.batch(LONG), acks=-1))
        assert not reply.done()
        assert side.caller.throttled_ms > 10_000


@pytest.mark.spec("MON-08", "SEC-07")
async def test_a_throttled_client_has_its_rates_and_throttle_times_among_the_metrics() -> None:
    async with api_side() as side:
        await side.data.lead()
        await side.data.append(*[LONG] * 20)
        registry, clock = Registry(), side.services.broker.clock
        register_metrics(side.services.shared.quotas, registry, clock.mono_ms)

        def shown(name: str) -> float | None:
            found = re.search(
                rf'^kafka_server_{name}{{client_id="caller",user=""}} (\S+)$',
                render(registry).decode(),
                re.MULTILINE,
            )
            return None if found is None else float(found[1])

        limit(side, producer_byte_rate=10.0, consumer_byte_rate=10.0, request_percentage=0.0)
        assert shown("produce_throttle_time") is None, "it has used nothing"
        records = side.data.batch(LONG)
        produced = await side.caller.ask(produce.API, 12, **fields(records))
        assert shown("produce_throttle_time") == throttle_ms(produced) > 10_000
        rate = shown("produce_byte_rate")
        assert rate is not None
        assert rate >= len(records) / 10  # ten seconds, of which nine were before it
        fetched = await side.caller.ask(fetch.API, 12, **fetch_fields("t"))
        assert shown("fetch_throttle_time") == throttle_ms(fetched) > 1_000
        assert shown("fetch_byte_rate") == 0, "it got nothing"
        assert shown("request_throttle_time") == 1_000
        assert shown("request_request_time") == 0
