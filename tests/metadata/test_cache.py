from __future__ import annotations

import logging

import pytest

from ottla.metadata.cache import DEPARTED_MS, MetadataCache
from ottla.metadata.image import DELETED, BrokerMetadata, Endpoint, PartitionMetadata, Update
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from tests.fakes.manual_time import ManualClock

B0, B1 = BrokerId(0), BrokerId(1)
TP = TopicPartition("orders", 0)


def update(epoch: int, *brokers: BrokerMetadata, leader: BrokerId | None = None) -> Update:
    states = (
        [(TP, NO_TOPIC_ID, PartitionMetadata(leader, LeaderEpoch(0), (), ()))]
        if leader is not None
        else []
    )
    return Update(B0, ControllerEpoch(epoch), brokers, states)


def broker(id_: BrokerId, *listeners: str) -> BrokerMetadata:
    return BrokerMetadata(id_, {name: Endpoint("host", 9092) for name in listeners})


@pytest.mark.spec("MDC-01", "MDC-02", "MDC-03")
def test_a_reader_keeps_the_image_it_took() -> None:
    cache = MetadataCache(B0, ManualClock())
    cache.apply(update(1, leader=B0))
    taken = cache.image
    cache.apply(update(1, leader=B1))
    old, new = taken.partition(TP), cache.image.partition(TP)
    assert old is not None
    assert new is not None
    assert (old.leader, new.leader) == (B0, B1)


@pytest.mark.spec("MDC-10", "MDC-11")
def test_deleted_partitions_are_handed_to_whoever_applied_the_update() -> None:
    cache = MetadataCache(B0, ManualClock())
    assert cache.apply(update(1, leader=B0)) == []
    assert cache.apply(update(1, leader=DELETED)) == [TP]


def test_an_old_controller_is_refused() -> None:
    cache = MetadataCache(B0, ManualClock())
    cache.apply(update(5, leader=B0))
    before = cache.image
    with pytest.raises(KafkaError) as refusal:
        cache.apply(update(4, leader=B1))
    assert refusal.value.code is ErrorCode.stale_controller_epoch
    assert cache.image is before


@pytest.mark.spec("MDC-08")
def test_brokers_with_other_listeners_are_complained_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = MetadataCache(B0, ManualClock())
    with caplog.at_level(logging.ERROR):
        cache.apply(update(1, broker(B0, "IN", "OUT"), broker(B1, "IN", "OUT")))
        assert caplog.messages == []
        cache.apply(update(1, broker(B0, "IN", "OUT"), broker(B1, "IN")))
    assert caplog.messages == [
        "listeners differ across brokers: broker 1 has IN, broker 0 has IN, OUT"
    ]


@pytest.mark.spec("MDC-08")
def test_a_broker_that_is_not_in_the_update_compares_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    MetadataCache(B0, ManualClock()).apply(update(1, broker(B1, "IN")))
    assert caplog.messages == []


def full(epoch: int, left: int, *topics: str) -> Update:
    state = PartitionMetadata(B0, LeaderEpoch(0), (), ())
    states = [(TopicPartition(name, 0), NO_TOPIC_ID, state) for name in topics]
    return Update(B0, ControllerEpoch(epoch), (), states, left)


@pytest.mark.spec("CTL-44", "MDC-11")
def test_after_a_full_update_what_it_does_not_name_is_gone_and_not_before() -> None:
    cache = MetadataCache(B0, ManualClock())
    cache.apply(update(1, leader=B0))
    assert not cache.is_whole
    assert cache.apply(full(2, 1, "a")) == []
    assert cache.image.topics.keys() == {"orders", "a"}
    assert not cache.is_whole
    assert cache.apply(full(2, 1, "a")) == [], "a repeated request changes nothing"
    assert cache.apply(full(2, 0, "b")) == [TP]
    assert cache.image.topics.keys() == {"a", "b"}
    assert cache.is_whole
    cache.apply(update(2, leader=B0))
    assert cache.image.topics.keys() == {"a", "b", "orders"}
    assert cache.is_whole


def test_a_full_update_that_was_cut_short_does_not_count() -> None:
    cache = MetadataCache(B0, ManualClock())
    cache.apply(full(1, 2, "a"))
    cache.apply(full(1, 1, "b"))
    cache.apply(full(2, 1, "c"))
    assert not cache.is_whole
    assert cache.apply(full(2, 0, "d")) == [TopicPartition("a", 0), TopicPartition("b", 0)]
    cache.apply(update(3))
    assert not cache.is_whole, "a new controller has not sent everything yet"


def test_a_broker_that_left_is_remembered_for_a_while_and_not_as_alive() -> None:
    clock = ManualClock(1_000)
    cache = MetadataCache(B0, clock)
    cache.apply(update(1, placed(B0, 1), placed(B1, 2)))
    assert cache.departed_nodes("IN") == []
    cache.apply(update(1, placed(B0, 1)))
    assert [node.id for node in cache.departed_nodes("IN")] == [B1]
    assert cache.departed_nodes("OUT") == [], "it has no such listener"
    assert [node.id for node in cache.image.nodes("IN")] == [B0]
    clock.ns += DEPARTED_MS * 1_000_000
    assert cache.departed_nodes("IN") == []


def test_a_broker_that_left_is_forgotten_once_it_is_back_or_another_has_its_address() -> None:
    cache = MetadataCache(B0, ManualClock())
    cache.apply(update(1, placed(B0, 1), placed(B1, 2)))
    cache.apply(update(1, placed(B0, 1)))
    cache.apply(update(1, placed(B0, 1), placed(B1, 3)))
    assert cache.departed_nodes("IN") == []
    cache.apply(update(1, placed(B0, 1)))
    cache.apply(update(1, placed(B0, 1), placed(BrokerId(2), 3)))
    assert cache.departed_nodes("IN") == []


def placed(id_: BrokerId, port: int) -> BrokerMetadata:
    return BrokerMetadata(id_, {"IN": Endpoint("host", port)})
