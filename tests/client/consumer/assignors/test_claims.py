from __future__ import annotations

from ottla.client.consumer.assignors.claims import settle
from ottla.client.consumer.assignors.user_data import OwnedPartitions
from ottla.model.ids import TopicPartition
from tests.client.consumer.assignors.dealing import parts

BOTH = {"a": frozenset({"t"}), "b": frozenset({"t"})}


def test_the_later_generation_is_believed_in_whatever_order() -> None:
    old, new = OwnedPartitions(tuple(parts("tp0")), 1), OwnedPartitions(tuple(parts("tp0")), 2)
    assert settle({"a": old, "b": new}, BOTH, {"t": 1}) == {TopicPartition("t", 0): "b"}
    assert settle({"a": new, "b": old}, BOTH, {"t": 1}) == {TopicPartition("t", 0): "a"}


def test_two_claims_of_one_generation_are_both_refused() -> None:
    claim = OwnedPartitions(tuple(parts("tp0")), 1)
    assert settle({"a": claim, "b": claim}, BOTH, {"t": 1}) == {}


def test_what_is_gone_or_no_longer_wanted_is_nobodys() -> None:
    topics = {"a": frozenset({"t"})}
    held = {"a": OwnedPartitions(tuple(parts("tp0 tp7 up0")), 1)}
    assert settle(held, topics, {"t": 1, "u": 1}) == {TopicPartition("t", 0): "a"}
