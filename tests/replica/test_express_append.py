"""The express lane: acknowledged at once, with all that an append entails; or left alone."""

from __future__ import annotations

import pytest

from ottla.log.plain_append import DECLINED
from ottla.model.errors import ErrorCode, KafkaError
from ottla.replica.express_append import append_express
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side, values_of


def express(side: DataSide, *values: bytes, acks: int = 1) -> int:
    batch = memoryview(side.batch(*values))
    partition = side.hosted.get(TP)
    return append_express(side.hosted, partition, batch, acks, side.clock.wall_ms())


@pytest.mark.spec("WIRE-11", "WIRE-13", "REP-59")
@pytest.mark.parametrize("acks", [1, -1])
async def test_a_batch_is_readable_and_counted_when_it_is_acknowledged(acks: int) -> None:
    async with data_side({"flush.before.ack": "never"}) as side:
        await side.lead()
        await side.append(b"first")
        waiting = side.start_fetch(1, max_wait_ms=1_000)
        assert express(side, b"a", b"b", acks=acks) == 1
        assert waiting.done(), "who waited for records has them"
        assert values_of(await side.read(1)) == [b"a", b"b"]
        assert side.hosted.get(TP).log.high_watermark == 3
        for name in ("", "all_topics_"):
            labels = {} if name else {"topic": "t"}
            group = f"kafka_server_brokertopicmetrics_{name}"
            assert side.count(f"{group}messages_in_total", **labels) == 3
            assert side.count(f"{group}total_produce_requests_total", **labels) == 2


@pytest.mark.spec("REP-59", "REP-63")
async def test_acks_all_is_left_to_those_who_can_wait() -> None:
    async with data_side({"flush.before.ack": "never"}) as side:
        await side.lead(replicas=(ME, OTHER))
        await side.append(b"first", acks=1)
        assert express(side, b"a", acks=-1) == DECLINED
        assert express(side, b"a", acks=1) == 1
        assert side.hosted.get(TP).log.high_watermark == 0, "the follower has nothing yet"


async def test_a_flush_before_the_acknowledgement_is_waited_for_elsewhere() -> None:
    async with data_side({"flush.before.ack": "auto"}) as side:
        await side.lead()
        await side.append(b"first", acks=1)
        assert express(side, b"a", acks=-1) == DECLINED
        assert express(side, b"a", acks=1) == 1


async def test_a_partition_that_is_not_led_here_is_declined() -> None:
    async with data_side() as side:
        await side.lead()
        await side.append(b"first", acks=1)
        await side.follow(epoch=9)
        assert express(side, b"a") == DECLINED


async def test_a_disk_that_fails_takes_the_partition_offline() -> None:
    async with data_side(dirs=("/a", "/b")) as side:
        await side.lead()
        await side.append(b"first", acks=1)
        side.disk.capacity_bytes = 0
        with pytest.raises(KafkaError) as refusal:
            express(side, b"a")
        assert refusal.value.code is ErrorCode.kafka_storage_error
