from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer.errors import CommitFailed
from ottla.client.consumer.group.rebalance import Rebalance
from ottla.client.consumer.rebalance_listener import RebalanceListener
from ottla.client.consumer.subscription import Subscriptions
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


class Story(RebalanceListener):
    """What happened, in order."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.failing = False
        self.subscriptions = Subscriptions()
        self.subscriptions.subscribe(["t"])
        self.rebalance = Rebalance(
            self.subscriptions, self.commit, self.invoke, lambda: self.pages.append("changed")
        )
        self.rebalance.listener = self

    async def commit(self) -> None:
        self.pages.append("commit")
        if self.failing:
            raise CommitFailed(ErrorCode.illegal_generation)

    async def invoke(self, function: Callable[[], Any]) -> Any:
        return function()

    def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.pages.append(f"assigned {len(self.subscriptions)}")
        if self.failing:
            raise ZeroDivisionError

    def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.pages.append(f"revoked {len(self.subscriptions)}")

    def on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.pages.append(f"lost {len(self.subscriptions)}")


@pytest.mark.spec("CON-20", "CON-22", "CON-27")
async def test_first_the_commit_then_the_listener_then_the_partitions() -> None:
    one = Story()
    await one.rebalance.assign(frozenset({ONE, TWO}))
    await one.rebalance.revoke(frozenset({ONE}))
    assert one.subscriptions.assigned == {TWO}
    assert one.pages == ["assigned 2", "changed", "commit", "revoked 2", "changed"]


async def test_what_is_lost_is_gone_before_the_listener_hears_of_it_and_not_committed() -> None:
    one = Story()
    await one.rebalance.assign(frozenset({ONE}))
    one.pages.clear()
    await one.rebalance.lose(frozenset({ONE}))
    assert one.pages == ["changed", "lost 0"]


async def test_nothing_happens_for_no_partitions_but_an_assignment_is_always_told() -> None:
    one = Story()
    await one.rebalance.revoke(frozenset())
    await one.rebalance.lose(frozenset())
    assert one.pages == []
    await one.rebalance.assign(frozenset())
    assert one.pages == ["assigned 0", "changed"]
    assert one.rebalance.count == 1


async def test_neither_a_commit_nor_a_listener_that_fails_stops_a_rebalance() -> None:
    one = Story()
    one.failing = True
    with pytest.raises(ZeroDivisionError):
        await one.rebalance.assign(frozenset({ONE}))
    assert one.subscriptions.assigned == {ONE}
    await one.rebalance.revoke(frozenset({ONE}))
    assert one.subscriptions.assigned == frozenset()
