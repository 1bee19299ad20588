"""Keeping up with the cluster: topics that come, partitions that grow, leaders that change.

Owns when the metadata a consumer needs is asked for, and what follows from it: a pattern takes new
topics, a position is checked against a new leader, a group joins again. Never decides who leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.cluster_view import ClusterView
from ottla.client.consumer.subscription import SubscriptionMode, Subscriptions
from ottla.client.errors import KafkaError
from ottla.client.retry import is_retriable
from ottla.config.client import ConsumerConfig

LEAST_PAUSE_MS: Final = 10


class MetadataWatch:
    """The cluster as far as this consumer's subscription goes."""

    def __init__(
        self, cluster: Cluster, subscriptions: Subscriptions, config: ConsumerConfig
    ) -> None:
        self._cluster = cluster
        self._subscriptions = subscriptions
        self._config = config
        self._others: dict[str, int] = {}
        self._asked = asyncio.Event()
        self._tell: list[Callable[[], None]] = []

    def tell(self, listener: Callable[[], None]) -> None:
        """Call this after every look at the cluster."""
        self._tell.append(listener)

    @property
    def view(self) -> ClusterView:
        return self._cluster.metadata

    def ask(self) -> None:
        """Somebody found the metadata wanting: look again soon."""
        self._asked.set()

    async def refresh(self, also: Iterable[str] = ()) -> ClusterView:
        """Look at everything the subscription touches, and at these topics; OSError if nobody
        answers."""
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.PATTERN:
            topics = None
        else:
            topics = {tp.topic for tp in subscriptions.assigned}.union(
                subscriptions.topics, also, self._others
            )
        view = await self._cluster.refresh(topics)
        self._learn(view)
        return view

    async def known(self, topics: Iterable[str]) -> Mapping[str, int]:
        """How many partitions each of these topics has; the group's leader must know of all."""
        wanted = frozenset(topics)
        if not wanted <= self.view.topics.keys():
            await self.refresh(wanted)
        counts = {
            name: len(self.view.topics[name].partitions)
            for name in wanted
            if name in self.view.topics
        }
        self._others = dict.fromkeys(wanted, 0) | counts
        return counts

    @property
    def has_grown(self) -> bool:
        """Whether topics that the leader dealt out have other numbers of partitions by now."""
        topics = self.view.topics
        return any(
            name in topics and len(topics[name].partitions) != count
            for name, count in self._others.items()
        )

    def forget_group(self) -> None:
        self._others = {}

    async def run(self) -> None:
        """Look whenever somebody asks, and when the metadata has grown old."""
        failures = 0
        while True:
            due_s = self._config.metadata_max_age_ms / 1e3
            try:
                async with asyncio.timeout(due_s):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            try:
                await self.refresh()
                failures = 0
            except (KafkaError, OSError) as error:
                if not is_retriable(error):
                    raise
                failures += 1
                self._asked.set()
            pause_ms = max(LEAST_PAUSE_MS, self._cluster.backoff.after(failures))
            await asyncio.sleep(pause_ms / 1e3)

    def _learn(self, view: ClusterView) -> None:
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.PATTERN:
            skip_internal = self._config.exclude_internal_topics
            subscriptions.matched(
                name
                for name, topic in view.topics.items()
                if not (topic.internal and skip_internal)
            )
        for partition in subscriptions:
            seen = view.partition(partition.tp)
            if seen is not None:
                partition.led_by(seen.leader_epoch)
        for listener in self._tell:
            listener()
