"""The picture of the cluster, and how the next one is made."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.image import (
    DELETED,
    BrokerMetadata,
    Endpoint,
    Image,
    Node,
    PartitionMetadata,
    TopicMetadata,
    Update,
)
from ottla.model.ids import NO_TOPIC_ID, BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition

B0, B1, B2 = BrokerId(0), BrokerId(1), BrokerId(2)
ORDERS, ORDERS_ID = "orders", UUID(int=7)


def broker(id_: BrokerId, *listeners: str, rack: str | None = None) -> BrokerMetadata:
    names = listeners or ("PLAINTEXT",)
    return BrokerMetadata(
        id_, {name: Endpoint(f"host{id_}", 9092 + i) for i, name in enumerate(names)}, rack
    )


def state(leader: BrokerId = B0, epoch: int = 0) -> PartitionMetadata:
    return PartitionMetadata(leader, LeaderEpoch(epoch), (B0, B1), (B0, B1))


def update(
    *partitions: tuple[TopicPartition, UUID, PartitionMetadata],
    brokers: tuple[BrokerMetadata, ...] = (broker(B0), broker(B1)),
    controller: BrokerId = B0,
) -> Update:
    return Update(controller, ControllerEpoch(1), brokers, partitions)


def orders(
    index: int, partition: PartitionMetadata
) -> tuple[TopicPartition, UUID, PartitionMetadata]:
    return TopicPartition(ORDERS, index), ORDERS_ID, partition


@pytest.mark.spec("MDC-04", "MDC-05", "MDC-06", "MDC-07")
def test_an_update_says_who_is_alive_and_who_leads() -> None:
    image, deleted = Image().changed_by(update(orders(0, state()), orders(1, state(B1))))
    assert deleted == []
    assert image.controller_id == B0
    assert sorted(image.brokers) == [B0, B1]
    assert image.topics[ORDERS].id == ORDERS_ID
    assert image.names[ORDERS_ID] == ORDERS
    assert list(image.partitions()) == [TopicPartition(ORDERS, 0), TopicPartition(ORDERS, 1)]
    assert image.partition(TopicPartition(ORDERS, 1)) == state(B1)
    assert image.partition(TopicPartition(ORDERS, 9)) is None
    assert image.partition(TopicPartition("other", 0)) is None


@pytest.mark.spec("MDC-07")
def test_a_negative_controller_is_none() -> None:
    image, _ = Image().changed_by(update(controller=BrokerId(-1)))
    assert image.controller_id is None


@pytest.mark.spec("MDC-07")
def test_each_broker_is_one_node_per_listener() -> None:
    both = broker(B0, "PLAINTEXT", "INTERNAL", rack="east")
    image, _ = Image().changed_by(update(brokers=(both, broker(B1))))
    assert image.node(B0, "INTERNAL") == Node(B0, "host0", 9093, "east")
    assert image.node(B1, "INTERNAL") is None
    assert image.node(B2, "PLAINTEXT") is None
    assert [node.id for node in image.nodes("PLAINTEXT")] == [B0, B1]


@pytest.mark.spec("MDC-06")
def test_the_replicas_of_a_partition_are_found_by_broker() -> None:
    image, _ = Image().changed_by(update(orders(0, state()), brokers=(broker(B1),)))
    current = image.replica_nodes(TopicPartition(ORDERS, 0), "PLAINTEXT")
    assert current == {B1: Node(B1, "host1", 9092, None)}
    assert image.replica_nodes(TopicPartition("other", 0), "PLAINTEXT") == {}


@pytest.mark.spec("MDC-09")
def test_an_update_without_partitions_replaces_brokers_alone() -> None:
    before, _ = Image().changed_by(update(orders(0, state())))
    after, deleted = before.changed_by(update(brokers=(broker(B2),)))
    assert deleted == []
    assert after.topics is before.topics
    assert list(after.brokers) == [B2]


@pytest.mark.spec("MDC-10", "MDC-11")
def test_a_partition_being_deleted_is_removed_and_reported() -> None:
    before, _ = Image().changed_by(update(orders(0, state()), orders(1, state())))
    after, deleted = before.changed_by(update(orders(0, state(DELETED))))
    assert deleted == [TopicPartition(ORDERS, 0)]
    assert list(after.topics[ORDERS].partitions) == [1]
    emptied, deleted = after.changed_by(
        update(orders(1, state(DELETED)), orders(5, state(DELETED)))
    )
    assert deleted == [TopicPartition(ORDERS, 1)]
    assert (emptied.topics, emptied.names) == ({}, {})


def test_a_topic_made_again_under_the_same_name_keeps_nothing_of_the_old_one() -> None:
    before, _ = Image().changed_by(update(orders(0, state()), orders(1, state())))
    after, _ = before.changed_by(update((TopicPartition(ORDERS, 0), UUID(int=8), state(B1))))
    assert after.topics[ORDERS] == TopicMetadata(UUID(int=8), {0: state(B1)})
    assert after.names == {UUID(int=8): ORDERS}


def test_an_update_without_topic_ids_keeps_those_known() -> None:
    before, _ = Image().changed_by(update(orders(0, state())))
    after, _ = before.changed_by(update((TopicPartition(ORDERS, 0), NO_TOPIC_ID, state(B1))))
    assert after.topics[ORDERS].id == ORDERS_ID
    assert after.names == {ORDERS_ID: ORDERS}


@pytest.mark.spec("MDC-04")
def test_an_image_never_changes() -> None:
    before, _ = Image().changed_by(update(orders(0, state())))
    before.changed_by(update(orders(0, state(DELETED)), orders(1, state())))
    assert list(before.partitions()) == [TopicPartition(ORDERS, 0)]
    assert before.names == {ORDERS_ID: ORDERS}


CHANGES = st.lists(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.sampled_from([B0, B1, DELETED])),
        max_size=4,
    ),
    max_size=12,
)


@given(CHANGES)
def test_any_history_gives_the_same_as_a_plain_dictionary(
    history: list[list[tuple[str, int, BrokerId]]],
) -> None:
    model: dict[TopicPartition, BrokerId] = {}
    image = Image()
    for changes in history:
        ids = {"a": UUID(int=1), "b": UUID(int=2)}
        updates = [(TopicPartition(t, p), ids[t], state(leader)) for t, p, leader in changes]
        expected = []
        for tp, _, partition in updates:
            if partition.leader != DELETED:
                model[tp] = partition.leader
            elif model.pop(tp, None) is not None:
                expected.append(tp)
        image, deleted = image.changed_by(update(*updates))
        assert deleted == expected
        current = {tp: image.topics[tp.topic].partitions[tp.partition] for tp in image.partitions()}
        assert {tp: partition.leader for tp, partition in current.items()} == model
        assert sorted(image.names.values()) == sorted({tp.topic for tp in model})


def test_one_topic_among_ten_thousand_changes_and_the_others_are_shared() -> None:
    topics = [(TopicPartition(f"t{i}", 0), UUID(int=i + 1), state()) for i in range(10_000)]
    image, _ = Image().changed_by(update(*topics))
    one = update((TopicPartition("t5", 0), UUID(int=6), state(B1)))
    changed, _ = image.changed_by(one)
    differing = [name for name in image.topics if changed.topics[name] is not image.topics[name]]
    assert differing == ["t5"]
    assert changed.names is image.names
