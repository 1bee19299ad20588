"""subscribe, assign, unsubscribe and close.

Owns what each of these calls does to the parts of a consumer. Both public classes call them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Iterable

from ottla.client.consumer.core import Core
from ottla.client.consumer.rebalance_listener import RebalanceListener
from ottla.client.consumer.subscription import SubscriptionMode, TopicPattern
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)


def subscribe(
    core: Core,
    topics: Iterable[str] | str | None,
    pattern: str | TopicPattern | None,
    listener: RebalanceListener | None,
) -> None:
    """Replace the subscription; the group assigns the partitions."""
    if (topics is None) == (pattern is None):
        raise UserError("subscribe() takes either topics or pattern=")
    if topics is not None:
        names = frozenset([topics] if isinstance(topics, str) else topics)
        for name in names:
            if not isinstance(name, str) or not name:
                raise UserError(
                    f"subscribe(): invalid topic name {name!r}: expected a non-empty string"
                )
        core.subscriptions.subscribe(names)
    else:
        assert pattern is not None
        core.subscriptions.subscribe_pattern(_compile(pattern))
        core.watch.request_refresh()
    core.rebalance.listener = listener or RebalanceListener()
    core.group.on_subscription_changed()
    core.wake_event.set()


def assign(core: Core, partitions: Collection[TopicPartition]) -> None:
    """Read exactly these partitions, without group assignment."""
    for tp in partitions:
        if not isinstance(tp, tuple) or len(tp) != 2 or tp[1] < 0:
            raise UserError(f"assign(): {tp!r}: expected TopicPartition(topic, partition)")
    core.subscriptions.assign([TopicPartition(*tp) for tp in partitions])
    core.position_loop.wake()
    core.fetcher.wake()


async def unsubscribe(core: Core) -> None:
    """Leave the group and clear the assignment."""
    if core.subscriptions.is_automatic:
        core.end_membership()
        await _release_partitions(core)
        await core.group.leave("unsubscribed", core.config.request_timeout_ms)
    core.subscriptions.clear()
    core.fetcher.wake()


async def close(core: Core, timeout_ms: int) -> None:
    """Commit if that is automatic, leave the group, release everything; all of it in this time.

    A broker that is connected and silent does not hold up the end of a program.
    """
    try:
        core.end_membership()
        async with asyncio.timeout(timeout_ms / 1000) as scope:
            await _commit_and_leave(core, timeout_ms)
    except TimeoutError:
        if not scope.expired():
            raise
        log.warning("consumer closed after %d ms without an answer from its broker", timeout_ms)
        await core.commits.settle(0)  # those who wait for a commit are told
        await core.run_callbacks()
    finally:
        core.subscriptions.clear()
        core.interceptors.close()
        core.stop()


async def _commit_and_leave(core: Core, timeout_ms: int) -> None:
    subscriptions = core.subscriptions
    if subscriptions.is_automatic:
        await _release_partitions(core)
    elif subscriptions.mode is SubscriptionMode.ASSIGNED:
        await core.rebalance.auto_commit()
    await core.commits.settle(timeout_ms)
    await core.run_callbacks()
    if subscriptions.is_automatic:
        await core.group.leave("the consumer is being closed", timeout_ms)
    subscriptions.clear()
    await core.fetcher.close()


async def _release_partitions(core: Core) -> None:
    if core.group.is_lost:
        await core.rebalance.lose(core.subscriptions.assigned)
    else:
        await core.rebalance.revoke(core.subscriptions.assigned)


def _compile(pattern: str | TopicPattern) -> TopicPattern:
    if not isinstance(pattern, str):
        return pattern
    try:
        return re.compile(pattern)
    except re.error as fault:
        raise UserError(
            f"subscribe(pattern={pattern!r}): invalid regular expression: {fault}"
        ) from None
