from __future__ import annotations

import pytest

import ottla
from ottla import ErrorCode, KafkaError
from ottla.client.admin import MorePartitions, NewTopic
from ottla.client.admin.topics import _describe_pages, _topic


@pytest.mark.spec("TOOL-18")
def test_topics_are_created_described_grown_and_deleted(admin: ottla.Admin, name: str) -> None:
    created = admin.create_topic(name, partitions=2, configs={"retention.ms": "1000"})
    assert (created.partitions, created.replication_factor) == (2, 1)
    assert created.configs["retention.ms"] == "1000"
    described = admin.describe_topic(name)
    assert described.id == created.id
    assert [one.index for one in described.partitions] == [0, 1]
    assert {one.leader for one in described.partitions} == {0}
    assert not any(one.under_replicated for one in described.partitions)
    admin.create_partitions({name: MorePartitions(4, [[0], [0]])}).all()
    admin.create_partitions({name: 5}).all()
    assert len(admin.describe_topic(name).partitions) == 5
    assert name in admin.list_topics()
    admin.delete_topic(name)
    assert name not in admin.list_topics()


def test_each_topic_of_a_request_has_its_own_outcome(admin: ottla.Admin, name: str) -> None:
    outcomes = admin.create_topics([NewTopic(name), NewTopic("no good name")])
    assert name in outcomes.succeeded
    failure = outcomes["no good name"]
    assert isinstance(failure, KafkaError)
    assert failure.code is ErrorCode.invalid_topic_exception
    with pytest.raises(KafkaError) as refused:
        admin.create_topic(name)
    assert refused.value.code is ErrorCode.topic_already_exists


def test_a_topic_can_be_placed_by_hand_and_asked_for_without_being_made(
    admin: ottla.Admin, name: str
) -> None:
    placed = NewTopic(name, assignments={0: [0], 1: [0]})
    assert admin.create_topics([placed], validate_only=True).one().name == name
    assert name not in admin.list_topics()
    assert admin.create_topics([placed]).one().partitions == 2


def test_what_is_not_there_is_named(admin: ottla.Admin) -> None:
    for failed in (
        admin.describe_topics(["nowhere"]).failed,
        admin.delete_topics(["nowhere"]).failed,
        admin.create_partitions({"nowhere": 2}).failed,
    ):
        [error] = failed.values()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.unknown_topic_or_partition
        assert "nowhere" in str(error)


def test_partitions_cannot_become_fewer(admin: ottla.Admin, topic: str) -> None:
    with pytest.raises(KafkaError) as refused:
        admin.create_partitions({topic: 1}).all()
    assert refused.value.code is ErrorCode.invalid_partitions


def test_the_brokers_own_topics_are_listed_when_asked_for(admin: ottla.Admin, topic: str) -> None:
    admin.alter_group_offsets("listed", {ottla.TopicPartition(topic, 0): 0}).all()
    assert "__consumer_offsets" not in admin.list_topics()
    assert "__consumer_offsets" in admin.list_topics(internal=True)


def test_a_topic_that_comes_in_pages_is_put_together(admin: ottla.Admin, name: str) -> None:
    admin.create_topic(name, partitions=5)

    async def pages(limit: int) -> list[int]:
        session = admin._admin
        rows, cursor = [], None
        while True:
            fields = {
                "topics": [{"name": name}],
                "response_partition_limit": limit,
                "cursor": cursor,
            }
            reply = await session.ask(0, 75, fields)
            rows += reply.topics
            if reply.next_cursor is None:
                return [one.index for one in _topic(rows).partitions]
            at = reply.next_cursor
            cursor = {"topic_name": at.topic_name, "partition_index": at.partition_index}

    assert admin.wait_for(lambda _: pages(2)) == [0, 1, 2, 3, 4]
    [row] = admin.wait_for(lambda each: _describe_pages(each, 0, [name]))
    assert len(row.partitions) == 5
