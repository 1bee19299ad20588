"""Which partitions are here, what is said of those that are not, and who hears of changes."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from tests.fakes.data_side import ME, OTHER, TP, DataSide, data_side

SECOND = TopicPartition("t", 1)


def said_of(side: DataSide, key: TopicPartition) -> ErrorCode:
    with pytest.raises(KafkaError) as refusal:
        side.hosted.get(key)
    return refusal.value.code


@pytest.mark.spec("REP-54", "REP-55")
async def test_a_partition_is_online_offline_elsewhere_or_nowhere() -> None:
    async with data_side() as side:
        hosted = side.hosted
        assert said_of(side, TP) is ErrorCode.unknown_topic_or_partition
        partition = await side.lead()
        assert hosted.get(TP) is hosted.find(TP) is partition
        hosted.mark_offline([TP])
        assert said_of(side, TP) is ErrorCode.kafka_storage_error
        assert hosted.offline == {TP}
        with pytest.raises(KafkaError) as refusal:
            partition.require_leadership()
        assert refusal.value.code is ErrorCode.kafka_storage_error, "who holds it hears it too"
        hosted.remove(TP)
        assert said_of(side, TP) is ErrorCode.not_leader_or_follower, "others may lead it"
        assert hosted.offline == frozenset()


async def test_a_corrupt_log_found_at_the_start_is_offline_before_anybody_asks() -> None:
    async with data_side() as side:
        side.hosted.mark_offline([TP])
        assert side.hosted.find(TP) is None
        assert said_of(side, TP) is ErrorCode.kafka_storage_error


async def test_all_partitions_can_be_walked_while_some_go() -> None:
    async with data_side() as side:
        for index in range(5):
            await side.lead(TopicPartition("t", index))
        assert len(side.hosted) == 5
        for partition in side.hosted:
            side.hosted.remove(partition.key)
        assert len(side.hosted) == 0


@pytest.mark.spec("MON-26")
async def test_a_topics_numbers_go_with_its_last_partition_here() -> None:
    async with data_side() as side:
        await side.lead()
        await side.lead(SECOND)
        await side.append(b"x")
        name = "kafka_server_brokertopicmetrics_messages_in_total"
        side.hosted.remove(SECOND)
        assert side.count(name, topic="t") == 1
        side.hosted.mark_offline([TP])
        with pytest.raises(KeyError):
            side.count(name, topic="t")
        assert not side.hosted._of_topic, "nothing is kept of a topic that is gone"
        side.hosted.remove(TP)
        await side.lead(SECOND, epoch=1)
        assert side.count(name, topic="t") == 0, "another life of it starts anew"


@pytest.mark.spec("DLY-24", "REP-63")
async def test_only_who_can_be_helped_is_woken_when_the_watermark_stays() -> None:
    async with data_side() as side:
        partition = await side.lead(replicas=(ME, OTHER))
        produce = side.start_append(b"a", acks=-1)
        consumer = side.start_fetch(0)
        side.hosted.advance(partition)
        assert (produce.done(), consumer.done()) == (False, False)
        partition.record_follower_fetch(OTHER, 1, 0)
        side.hosted.advance(partition)
        assert (produce.done(), consumer.done()) == (True, True)


async def test_the_names_of_all_topics_are_known_by_id() -> None:
    async with data_side() as side:
        await side.lead()
        assert list(side.hosted.topic_names.values()) == ["t"]
