from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.brokers.plans import check_safe, without_leaders_on, without_replicas_on
from ottla.client.admin import BrokerInfo, Partition, Topic
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


def partition(
    index: int, replicas: tuple[int, ...], *, isr: tuple[int, ...] | None = None
) -> Partition:
    in_sync = replicas if isr is None else isr
    return Partition(index, in_sync[0] if in_sync else None, 0, replicas, in_sync, ())


def topic(*partitions: Partition) -> Topic:
    return Topic("orders", None, False, partitions)


def broker(id: int, rack: str | None = None) -> BrokerInfo:
    return BrokerInfo(id, "h", 9092, rack)


def test_a_drained_broker_becomes_the_last_choice_of_its_partitions() -> None:
    plan = without_leaders_on(
        [topic(partition(0, (1, 2, 3), isr=(1, 3)), partition(1, (2, 1)), partition(2, (1,)))], 1
    )
    assert plan == {TopicPartition("orders", 0): (3, 2, 1)}


@given(
    st.lists(st.permutations([0, 1, 2, 3, 4]), min_size=1, max_size=20),
    st.integers(1, 4),
    st.integers(0, 4),
)
def test_a_decommissioned_broker_has_nothing_left_and_every_factor_is_kept(
    orders: list[list[int]], copies: int, leaving: int
) -> None:
    topics = [topic(*(partition(i, tuple(order[:copies])) for i, order in enumerate(orders)))]
    plan = without_replicas_on(topics, leaving, [broker(id) for id in range(5)])
    for index, order in enumerate(orders):
        replicas = plan.get(TopicPartition("orders", index), tuple(order[:copies]))
        assert leaving not in replicas
        assert len(set(replicas)) == copies


def test_replicas_go_to_the_emptiest_broker_of_another_rack() -> None:
    topics = [topic(partition(0, (0, 1)), partition(1, (3,)), partition(2, (3,)))]
    brokers = [broker(0, "a"), broker(1, "b"), broker(2, "b"), broker(3, "c")]
    plan = without_replicas_on(topics, 0, brokers)
    assert plan == {TopicPartition("orders", 0): (3, 1)}, "broker 2 shares its rack with broker 1"


def test_too_few_brokers_are_refused_by_the_name_of_the_partition() -> None:
    with pytest.raises(UserError, match=r"orders-0: 2 replicas need 2 brokers, but only 1"):
        without_replicas_on([topic(partition(0, (0, 1)))], 0, [broker(0), broker(1)])


def test_the_only_in_sync_replica_is_not_taken_away() -> None:
    with pytest.raises(UserError, match=r"only in-sync replica of orders-0"):
        check_safe([topic(partition(0, (0, 1), isr=(0,)))], 0)
    with pytest.raises(UserError, match=r"orders-0 without a leader"):
        check_safe([topic(partition(0, (0, 1), isr=()))], 0)
    check_safe([topic(partition(0, (0, 1)), partition(1, (0,)))], 0)
