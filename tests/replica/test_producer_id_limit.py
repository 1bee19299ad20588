"""How many producer ids the partitions of a broker remember."""

from __future__ import annotations

import logging

import pytest

from ottla.broker.memory import memory_shares
from ottla.config.broker import BrokerConfig
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.replica.maintenance_loop import COUNT_EVERY_MS, MaintenanceLoop
from ottla.replica.producer_id_limit import PRODUCER_BYTES, SHORT_KEEP_MS, ProducerIdLimit
from tests.fakes.data_side import DataSide, data_side

TP = TopicPartition("t", 0)
DAY_MS = 86_400_000


async def append(side: DataSide, producer_id: int, sequence: int = 0) -> ErrorCode:
    records = side.batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    return (await side.start_append(records=records, acks=-1)).error_code


def loop_of(side: DataSide) -> MaintenanceLoop:
    return side.data._maintenance


def test_there_is_room_for_an_ordinary_number_on_a_small_machine() -> None:
    share = memory_shares(BrokerConfig(), 2 << 30).producer_ids
    assert share // PRODUCER_BYTES > 100_000


def test_idle_ids_are_kept_for_as_long_as_configured_unless_there_are_many() -> None:
    limit = ProducerIdLimit(1_000)
    limit.count = 749
    assert limit.keep_ms(DAY_MS) == DAY_MS
    limit.count = 750
    assert limit.keep_ms(DAY_MS) == SHORT_KEEP_MS
    assert limit.keep_ms(1_000) == 1_000
    unlimited = ProducerIdLimit()
    unlimited.count = 10**9
    assert unlimited.keep_ms(DAY_MS) == DAY_MS


def test_the_log_names_the_setting_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    limit = ProducerIdLimit(0)
    with caplog.at_level(logging.WARNING):
        for ms in range(0, 20_000, 100):
            with pytest.raises(KafkaError) as refusal:
                limit.admit(TP, 5, WallMs(ms))
            assert refusal.value.code is ErrorCode.policy_violation
    assert len(caplog.records) == 2
    assert "memory.limit.bytes" in caplog.text


async def test_a_batch_of_one_id_too_many_is_refused_and_known_producers_go_on() -> None:
    async with data_side() as side:
        partition = await side.lead()
        side.hosted.environment.producer_ids.most = 3
        assert [await append(side, number) for number in range(5)] == [
            *[ErrorCode.none] * 3,
            *[ErrorCode.policy_violation] * 2,
        ]
        assert await append(side, 1, sequence=1) is ErrorCode.none
        assert (await side.start_append(b"no producer id", acks=-1)).error_code is ErrorCode.none
        assert len(partition.log.producers) == 3


async def test_idle_ids_make_room_long_before_they_expire() -> None:
    async with data_side() as side:
        await side.lead()
        ids = side.hosted.environment.producer_ids
        ids.most = 4
        assert [await append(side, number) for number in range(4)] == [ErrorCode.none] * 4
        await loop_of(side).count_producers()
        assert ids.count == 4, "none of them is idle for long enough"
        assert await append(side, 9) is ErrorCode.policy_violation
        await side.until(SHORT_KEEP_MS + COUNT_EVERY_MS)
        await loop_of(side).count_producers()
        assert ids.count == 0
        assert await append(side, 9) is ErrorCode.none
