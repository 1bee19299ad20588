from __future__ import annotations

import ottla
from ottla import ErrorCode, KafkaError, TopicPartition
from ottla.client.admin import CommittedOffset


def test_offsets_are_set_listed_and_deleted(admin: ottla.Admin, topic: str, name: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    admin.alter_group_offsets(name, {first: 3, second: CommittedOffset(4, 0, "note")}).all()
    found = admin.list_group_offsets(name).all()
    assert found == {first: CommittedOffset(3), second: CommittedOffset(4, 0, "note")}
    assert list(admin.list_group_offsets(name, [second])) == [second]
    admin.delete_group_offsets(name, [first]).all()
    assert list(admin.list_group_offsets(name, require_stable=True)) == [second]
    assert admin.list_group_offsets(name, [first]) == {}


def test_each_partition_has_its_own_outcome(admin: ottla.Admin, topic: str, name: str) -> None:
    here, nowhere = TopicPartition(topic, 0), TopicPartition("nowhere", 0)
    outcomes = admin.alter_group_offsets(name, {here: 0, nowhere: 0})
    assert list(outcomes.succeeded) == [here]
    error = outcomes[nowhere]
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.unknown_topic_or_partition


def test_a_group_that_is_not_there_has_no_offsets(admin: ottla.Admin, name: str) -> None:
    assert admin.list_group_offsets(name) == {}
