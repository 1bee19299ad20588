from __future__ import annotations

from ottla.client.consumer.assignors.assignor import (
    Subscription,
    all_partitions,
    in_order,
    subscribers,
)
from tests.client.consumer.assignors.assignor_groups import group, parts


def test_members_without_a_given_name_come_last_by_their_ids() -> None:
    members = {
        "b": Subscription(()),
        "a": Subscription(()),
        "z": Subscription((), instance_id="i2"),
        "y": Subscription((), instance_id="i1"),
    }
    assert in_order(members) == ["y", "z", "a", "b"]


def test_subscribers_are_counted_once_and_in_order() -> None:
    assert subscribers(group(b="u t t", a="t")) == {"t": ["a", "b"], "u": ["b"]}


def test_partitions_come_in_order_and_only_if_they_exist() -> None:
    assert all_partitions(["u", "t", "gone"], {"t": 2, "u": 1}) == parts("tp0 tp1 up0")
