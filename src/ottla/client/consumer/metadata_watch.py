"""Follows the cluster's metadata: new topics, added partitions, changed leaders.

Owns when a consumer refreshes its metadata, and what follows: a pattern matches new topics, a
position is validated against a new leader, a member rejoins. Never elects a leader.
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
    """The metadata of the topics a consumer subscribes to."""

    def __init__(
        self, cluster: Cluster, subscriptions: Subscriptions, config: ConsumerConfig
    ) -> None:
        self._cluster = cluster
        self._subscriptions = subscriptions
        self._config = config
        self._group_topics: dict[str, int] = {}
        self._refresh_requested = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every metadata refresh."""
        self._listeners.append(listener)

    @property
    def view(self) -> ClusterView:
        return self._cluster.metadata

    def request_refresh(self) -> None:
        """Metadata was found to be stale or incomplete: refresh it soon."""
        self._refresh_requested.set()

    async def refresh(self, also: Iterable[str] = ()) -> ClusterView:
        """Refresh the subscribed topics and `also`; OSError if no broker answers."""
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.PATTERN:
            topics = None
        else:
            topics = {tp.topic for tp in subscriptions.assigned}.union(
                subscriptions.topics, also, self._group_topics
            )
        view = await self._cluster.refresh(topics)
        self._apply(view)
        return view

    async def partition_counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        """The number of partitions of each of these topics; the group's leader needs all."""
        names = frozenset(topics)
        if not names <= self.view.topics.keys():
            await self.refresh(names)
        counts = {
            name: len(self.view.topics[name].partitions)
            for name in names
            if name in self.view.topics
        }
        self._group_topics = dict.fromkeys(names, 0) | counts
        return counts

    @property
    def has_grown(self) -> bool:
        """Whether topics that the leader assigned have a different number of partitions now."""
        topics = self.view.topics
        return any(
            name in topics and len(topics[name].partitions) != count
            for name, count in self._group_topics.items()
        )

    def forget_group(self) -> None:
        self._group_topics = {}

    async def run(self) -> None:
        """Refresh on request, and after `metadata.max.age.ms`."""
        failures = 0
        while True:
            due_s = self._config.metadata_max_age_ms / 1e3
            try:
                async with asyncio.timeout(due_s):
                    await self._refresh_requested.wait()
            except TimeoutError:
                pass
            self._refresh_requested.clear()
            try:
                await self.refresh()
                failures = 0
            except (KafkaError, OSError) as error:
                if not is_retriable(error):
                    raise
                failures += 1
                self._refresh_requested.set()
            pause_ms = max(LEAST_PAUSE_MS, self._cluster.backoff.after(failures))
            await asyncio.sleep(pause_ms / 1e3)

    def _apply(self, view: ClusterView) -> None:
        subscriptions = self._subscriptions
        if subscriptions.mode is SubscriptionMode.PATTERN:
            skip_internal = self._config.exclude_internal_topics
            subscriptions.apply_pattern(
                name
                for name, topic in view.topics.items()
                if not (topic.internal and skip_internal)
            )
        for partition in subscriptions:
            partition_view = view.partition(partition.tp)
            if partition_view is not None:
                partition.on_leader_epoch(partition_view.leader_epoch)
        for listener in self._listeners:
            listener()
