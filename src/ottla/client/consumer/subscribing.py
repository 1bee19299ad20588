"""Choosing what to read: subscribe, assign, unsubscribe; and leaving at the end.

Owns what each of these calls does to the parts of a consumer. Both faces call them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ottla.client.consumer.core import Core
from ottla.client.consumer.rebalance_listener import RebalanceListener
from ottla.client.consumer.subscription import SubscriptionMode
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


def subscribe(
    core: Core,
    topics: Iterable[str] | str | None,
    pattern: str | re.Pattern[str] | None,
    listener: RebalanceListener | None,
) -> None:
    """Read these topics instead of those before; the group deals out the partitions."""
    if (topics is None) == (pattern is None):
        raise UserError("subscribe() takes topics, or pattern=; not both and not neither")
    if topics is not None:
        names = frozenset([topics] if isinstance(topics, str) else topics)
        for name in names:
            if not isinstance(name, str) or not name:
                raise UserError(f"subscribe(): {name!r} is no topic: expected a name")
        core.subscriptions.subscribe(names)
    else:
        assert pattern is not None
        core.subscriptions.subscribe_pattern(_compiled(pattern))
        core.watch.ask()
    core.rebalance.listener = listener or RebalanceListener()
    core.group.subscribed()
    core.bell.set()


def assign(core: Core, partitions: Collection[TopicPartition]) -> None:
    """Read these partitions; no group is asked, others deliver nothing."""
    for tp in partitions:
        if not isinstance(tp, tuple) or len(tp) != 2 or tp[1] < 0:
            raise UserError(f"assign(): {tp!r}: expected TopicPartition(topic, partition)")
    core.subscriptions.assign([TopicPartition(*tp) for tp in partitions])
    core.placer.kick()
    core.fetcher.kick()


async def unsubscribe(core: Core) -> None:
    """Leave the group, drop everything."""
    if core.subscriptions.is_automatic:
        core.end_membership()
        await _give_up(core)
        await core.group.leave("unsubscribed", core.config.request_timeout_ms)
    core.subscriptions.clear()
    core.fetcher.kick()


async def close(core: Core, timeout_ms: int) -> None:
    """Commit if that is automatic, leave the group, let go of everything."""
    subscriptions = core.subscriptions
    try:
        core.end_membership()
        if subscriptions.is_automatic:
            await _give_up(core)
        elif subscriptions.mode is SubscriptionMode.ASSIGNED:
            await core.rebalance.save()
        await core.commits.settle(timeout_ms)
        await core.call_back()
        if subscriptions.is_automatic:
            await core.group.leave("the consumer is being closed", timeout_ms)
        subscriptions.clear()
        await core.fetcher.close()
    finally:
        core.interceptors.close()
        core.stop()


async def _give_up(core: Core) -> None:
    if core.group.is_lost:
        await core.rebalance.lose(core.subscriptions.assigned)
    else:
        await core.rebalance.revoke(core.subscriptions.assigned)


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as fault:
        raise UserError(
            f"subscribe(pattern={pattern!r}): not a regular expression: {fault}"
        ) from None
