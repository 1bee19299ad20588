from __future__ import annotations

from uuid import UUID

import pytest

from ottla.cli.kafka.topic_lines import Filters, lines_of, partition_line
from ottla.client.admin import Partition, Reassignment, Topic
from ottla.model.ids import TopicPartition

WELL = Partition(0, 1, 0, (1, 2), (1, 2), (), (), ())
SHORT = Partition(1, 2, 0, (2, 1), (2,), (1,), (1,), ())
LOST = Partition(2, None, 0, (1,), (), (1,))
TOPIC = Topic("t", UUID(int=1), False, (WELL, SHORT, LOST))


@pytest.mark.spec("TOOL-06")
def test_a_topic_is_a_line_and_each_partition_one_below_it() -> None:
    lines = list(lines_of(TOPIC, {"retention.ms": "1", "segment.ms": "2"}, Filters(), 1, {}))
    assert lines == [
        "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 3\tReplicationFactor: 2"
        "\tConfigs: retention.ms=1,segment.ms=2",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: ",
        "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2\tElr: 1\tLastKnownElr: ",
        "\tTopic: t\tPartition: 2\tLeader: none\tReplicas: 1\tIsr: \tElr: N/A\tLastKnownElr: N/A",
    ]


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        (Filters(under_replicated=True), [1, 2]),
        (Filters(unavailable=True), [2]),
        (Filters(under_min_isr=True), [1, 2]),
        (Filters(at_min_isr=True), [0]),
    ],
)
def test_filters_show_partitions_alone(filters: Filters, shown: list[int]) -> None:
    lines = list(lines_of(TOPIC, {}, filters, 2, {}))
    assert [int(line.split("\t")[2].split(": ")[1]) for line in lines] == shown


def test_only_topics_with_settings_of_their_own_may_be_shown() -> None:
    only = Filters(overrides_only=True)
    assert list(lines_of(TOPIC, {}, only, 1, {})) == []
    assert len(list(lines_of(TOPIC, {"a": "1"}, only, 1, {}))) == 1


def test_a_move_under_way_is_shown() -> None:
    move = Reassignment((1, 2, 3), (3,), (1,))
    assert "\tAdding Replicas: 3\tRemoving Replicas: 1\t" in partition_line("t", WELL, move)
    lines = list(lines_of(TOPIC, {}, Filters(), 1, {TopicPartition("t", 0): move}))
    assert sum("Adding Replicas" in line for line in lines) == 1
