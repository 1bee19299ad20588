"""An event weighs as much as the partitions it may concern."""

from __future__ import annotations

import pytest

from ottla.controller.event_size import partition_count
from ottla.controller.events import (
    BalanceDue,
    DeletionRequested,
    Elected,
    ElectionKind,
    ElectionRequested,
    Event,
    LiveBrokersChanged,
    MorePartitions,
    NewTopic,
    PartitionCreationRequested,
    PartitionsReloaded,
    TopicCreationRequested,
    TopicsReloaded,
)
from ottla.controller.state import ControllerState, PartitionAssignment, TopicAssignment
from ottla.model.ids import BrokerId, ControllerEpoch, TopicId, TopicPartition

ME = BrokerId(1)
STATE = ControllerState(
    ME,
    topics={
        name: TopicAssignment(
            TopicId(int=size), {n: PartitionAssignment((ME,)) for n in range(size)}, 0
        )
        for name, size in (("small", 2), ("wide", 500))
    },
)
NEW = {
    "new": TopicAssignment(TopicId(int=9), dict.fromkeys(range(3), PartitionAssignment((ME,))), 1)
}
CASES: dict[str, tuple[Event, int]] = {
    "topics of so many partitions": (
        TopicCreationRequested(1, (NewTopic("a", 7), NewTopic("b", 5))),
        12,
    ),
    "a topic of the default size": (
        TopicCreationRequested(1, (NewTopic("a"),)),
        STATE.rules.num_partitions,
    ),
    "a topic that is laid out": (
        TopicCreationRequested(1, (NewTopic("a", -1, -1, {0: (ME,)}),)),
        1,
    ),
    "more partitions": (PartitionCreationRequested(1, (MorePartitions("wide", 600),)), 600),
    "deleting": (DeletionRequested({"wide": 1, "small": 2, "nobody": 3}), 502),
    "a named election": (
        ElectionRequested(1, ElectionKind.PREFERRED, (TopicPartition("wide", 0),)),
        1,
    ),
    "an election of all": (ElectionRequested(1, ElectionKind.PREFERRED), 502),
    "balance": (BalanceDue(), 502),
    "brokers that join or leave": (LiveBrokersChanged({}), 502),
    "a new controller": (Elected(ControllerEpoch(1), 0, {}, STATE.topics), 502),
    "topics found in the store": (TopicsReloaded(frozenset({"small", "new"}), NEW), 503),
    "a topic that grew": (PartitionsReloaded("new", NEW["new"]), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_an_event_weighs_as_much_as_the_partitions_it_may_concern(name: str) -> None:
    event, expected = CASES[name]
    assert partition_count(STATE, event) == expected
