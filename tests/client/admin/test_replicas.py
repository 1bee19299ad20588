from __future__ import annotations

import pytest

import ottla
from ottla import ErrorCode, KafkaError, TopicPartition
from ottla.client.admin import ElectionKind


@pytest.mark.spec("TOOL-18")
def test_an_election_that_changes_nothing_is_told_so(admin: ottla.Admin, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    for kind in ElectionKind:
        error = admin.elect_leaders([partition], kind=kind)[partition]
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.election_not_needed
    assert admin.elect_leaders([]) == {}
    assert not admin.elect_leaders().failed, "of all partitions only those that change are told"


@pytest.mark.spec("TOOL-16")
def test_moves_are_asked_for_listed_and_refused(admin: ottla.Admin, topic: str) -> None:
    here, nowhere = TopicPartition(topic, 0), TopicPartition("nowhere", 0)
    outcomes = admin.alter_partition_reassignments({here: [0], nowhere: [0]})
    assert list(outcomes.succeeded) == [here]
    assert isinstance(outcomes[nowhere], KafkaError)
    stranger = admin.alter_partition_reassignments({here: [77]})[here]
    assert isinstance(stranger, KafkaError)
    assert stranger.code is ErrorCode.invalid_replica_assignment
    assert admin.list_partition_reassignments() == {}
    assert admin.list_partition_reassignments([here]) == {}
    idle = admin.alter_partition_reassignments({here: None})[here]
    assert isinstance(idle, KafkaError)
    assert idle.code is ErrorCode.no_reassignment_in_progress
