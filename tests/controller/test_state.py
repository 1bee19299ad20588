"""The two tables of legal moves, as the inventory has them."""

from __future__ import annotations

import pytest

from ottla.config.broker import BrokerConfig
from ottla.controller.state import (
    PARTITION_MOVES,
    REPLICA_MOVES,
    PartitionAssignment,
    PartitionState,
    ReplicaState,
    TopicRules,
)
from ottla.model.ids import BrokerId
from tests.controller.transcript import Actor

P, R = PartitionState, ReplicaState


@pytest.mark.spec("CTL-62")
def test_partition_states_have_exactly_these_predecessors() -> None:
    predecessors = {
        P.NEW: {P.NON_EXISTENT},
        P.ONLINE: {P.NEW, P.ONLINE, P.OFFLINE},
        P.OFFLINE: {P.NEW, P.ONLINE, P.OFFLINE},
        P.NON_EXISTENT: {P.OFFLINE},
    }
    for to, legal in predecessors.items():
        assert {now for now, moves in PARTITION_MOVES.items() if to in moves} == legal


@pytest.mark.spec("CTL-58")
def test_replica_states_have_exactly_these_predecessors() -> None:
    predecessors = {
        R.NEW: {R.NON_EXISTENT},
        R.ONLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
        R.OFFLINE: {R.NEW, R.ONLINE, R.OFFLINE, R.DELETION_INELIGIBLE},
        R.DELETION_STARTED: {R.OFFLINE},
        R.DELETION_SUCCESSFUL: {R.DELETION_STARTED},
        R.DELETION_INELIGIBLE: {R.DELETION_STARTED, R.OFFLINE},
        R.NON_EXISTENT: {R.DELETION_SUCCESSFUL},
    }
    for to, legal in predecessors.items():
        assert {now for now, moves in REPLICA_MOVES.items() if to in moves} == legal


@pytest.mark.spec("CTL-33")
def test_offline_partitions_are_counted_unless_their_topic_is_going() -> None:
    actor = Actor()
    actor.run("elected 1 1 2 t-0=1/1/1 t-1=2/2/2 u-0=2/2/2")
    actor.run("brokers 1")
    assert actor.state.offline_partition_count() == 2
    actor.run("delete u")
    assert actor.state.offline_partition_count() == 1


def test_the_target_of_a_move_is_what_remains() -> None:
    one, two, three = map(BrokerId, (1, 2, 3))
    moving = PartitionAssignment((three, one, two), adding=(three,), removing=(two,))
    assert moving.target == (three, one)
    assert moving.is_moving


def test_rules_follow_the_brokers_settings() -> None:
    config = BrokerConfig.parse({"num.partitions": "7", "delete.topic.enable": "false"})
    rules = TopicRules.of(config)
    assert rules.num_partitions == 7
    assert not rules.delete_topic_enable
