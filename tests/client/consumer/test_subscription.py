from __future__ import annotations

import re

import pytest

from ottla.client.consumer.subscription import SubscriptionMode, Subscriptions
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.spec("CON-01")
@pytest.mark.parametrize("first", ["topics", "pattern", "assigned"])
@pytest.mark.parametrize("second", ["topics", "pattern", "assigned"])
def test_the_three_ways_are_not_mixed(first: str, second: str) -> None:
    def choose(way: str) -> None:
        if way == "topics":
            subscriptions.subscribe(["t"])
        elif way == "pattern":
            subscriptions.subscribe_pattern(re.compile("t"))
        else:
            subscriptions.assign([ONE])

    subscriptions = Subscriptions()
    choose(first)
    if first == second:
        choose(second)
        return
    with pytest.raises(UserError, match=re.escape("call unsubscribe() first")):
        choose(second)
    subscriptions.clear()
    choose(second)


@pytest.mark.spec("CON-02")
def test_subscribing_replaces_and_is_news_only_if_it_differs() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe(["a", "b"])
    revision = subscriptions.revision
    subscriptions.subscribe(["b", "a"])
    assert subscriptions.revision == revision
    subscriptions.subscribe(["c"])
    assert subscriptions.topics == {"c"}
    assert subscriptions.revision != revision


def test_a_pattern_takes_the_topics_it_is_found_in() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe_pattern(re.compile("^orders-"))
    assert subscriptions.apply_pattern(["orders-eu", "my-orders-eu", "users"])
    assert subscriptions.topics == {"orders-eu"}
    assert not subscriptions.apply_pattern(["orders-eu"])
    assert subscriptions.is_automatic


@pytest.mark.spec("CON-03")
def test_partitions_that_stay_keep_their_positions() -> None:
    subscriptions = Subscriptions()
    subscriptions.assign([ONE])
    subscriptions[ONE].seek(7)
    subscriptions.assign([ONE, TWO])
    assert subscriptions[ONE].offset == 7
    assert not subscriptions[TWO].has_position
    assert subscriptions.positions().keys() == {ONE}
    assert not subscriptions.is_automatic


def test_what_is_taken_away_is_worth_nothing_any_more() -> None:
    subscriptions = Subscriptions()
    subscriptions.assign([ONE])
    part = subscriptions[ONE]
    version = part.version
    subscriptions.assign([TWO])
    assert part.version != version
    assert subscriptions.get(ONE) is None


@pytest.mark.spec("CON-09")
def test_a_partition_that_is_not_assigned_is_named() -> None:
    with pytest.raises(UserError, match="t-0 is not assigned to this consumer"):
        Subscriptions()[ONE]


@pytest.mark.spec("CON-04")
def test_clearing_drops_everything() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe(["t"])
    subscriptions.replace([ONE])
    subscriptions.clear()
    assert (subscriptions.mode, subscriptions.topics, len(subscriptions)) == (
        SubscriptionMode.NOTHING,
        frozenset(),
        0,
    )


def test_the_fault_of_a_stuck_partition_is_found() -> None:
    subscriptions = Subscriptions()
    subscriptions.assign([ONE, TWO])
    assert subscriptions.fault is None
    fault = LookupError()
    subscriptions[TWO].mark_stuck(fault)
    assert subscriptions.fault is fault
