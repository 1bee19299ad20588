"""Which fetcher copies which partition.

Owns the fetchers, `num.replica.fetchers` for each broker that leads a partition followed here, and
their tasks. Every change of an assignment goes through `add` and `remove`. Never fetches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias
from zlib import crc32

from ottla.model.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from ottla.model.metrics import Labels, Registry
from ottla.replica.fetcher.fetcher_loop import FetcherLoop
from ottla.replica.fetcher.follower import FollowedPartition
from ottla.replica.fetcher.leader_requests import FetchLink
from ottla.replica.fetcher.settings import FetcherSettings, Replication
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

Connect: TypeAlias = Callable[[BrokerId, str], FetchLink]
"""The link to a broker for a purpose; ConnectionError while its address is not known."""
_FetcherKey: TypeAlias = tuple[BrokerId, int]


class Fetchers:
    def __init__(
        self,
        connect: Connect,
        replication: Replication,
        settings: Callable[[], FetcherSettings],
        fetcher_count: Callable[[], int],
    ) -> None:
        self._connect = connect
        self._replication = replication
        self._settings = settings
        self._fetcher_count = fetcher_count
        self._fetchers: dict[_FetcherKey, FetcherLoop] = {}
        self._of_partition: dict[TopicPartition, _FetcherKey] = {}
        self._not_started: list[FetcherLoop] = []
        self._changed = asyncio.Event()

    def __iter__(self) -> Iterator[FetcherLoop]:
        return iter(list(self._fetchers.values()))

    def register_gauges(self, registry: Registry) -> None:
        """Kafka's gauges of the fetchers, computed when they are read."""
        registry.gauge(
            "kafka_server_replicafetchermanager_max_lag",
            "Most records that a followed partition lacks of what its leader has committed.",
            lambda: self.max_lag,
        )
        registry.gauge(
            "kafka_server_replicafetchermanager_failed_partitions_count",
            "Partitions whose records cannot be appended.",
            lambda: self.failed_count,
        )
        registry.series(
            "kafka_server_fetcherlagmetrics_consumer_lag",
            "Records that a followed partition lacks of what its leader has committed.",
            self._lags,
        )

    def _lags(self) -> Iterator[tuple[Labels, float]]:
        for fetcher in self:
            for followed in fetcher:
                topic, index = followed.key
                yield (("partition", str(index)), ("topic", topic)), followed.lag

    @property
    def failed_count(self) -> int:
        """Partitions that cannot be copied."""
        return sum(followed.failed for fetcher in self for followed in fetcher)

    @property
    def max_lag(self) -> int:
        """The largest number of records that a partition lacks of what its leader committed."""
        return max((followed.lag for fetcher in self for followed in fetcher), default=0)

    def add(self, partition: HostedPartition) -> None:
        """Copy a partition from its leader, in its leader epoch."""
        key, leader = partition.key, partition.leader_id
        self.remove(key)
        if leader < 0:
            return
        number = crc32(str(key).encode()) % self._fetcher_count()
        fetcher = self._fetchers.get((leader, number)) or self._create(leader, number)
        topic_id = partition.log.topic_id or NO_TOPIC_ID
        self._of_partition[key] = (leader, number)
        fetcher.add(FollowedPartition(key, topic_id, partition.leader_epoch))

    def remove(self, key: TopicPartition) -> None:
        """Do not copy a partition any more; a reply that is under way is ignored."""
        index = self._of_partition.pop(key, None)
        if index is None:
            return
        fetcher = self._fetchers[index]
        fetcher.remove(key)
        if not len(fetcher):
            fetcher.stop()
            del self._fetchers[index]

    def on_lead(self, partition: HostedPartition) -> None:
        self.remove(partition.key)

    def on_unlead(self, key: TopicPartition) -> None:
        self.remove(key)

    async def run(self) -> None:
        """Run the fetchers that there are, until the broker stops."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                started, self._not_started = self._not_started, []
                for fetcher in started:
                    tasks.create_task(self._run(fetcher))
                await self._changed.wait()

    async def _run(self, fetcher: FetcherLoop) -> None:
        try:
            await fetcher.run()
        except Exception:
            # Its partitions fall behind and leave the in-sync sets; the others go on.
            log.exception("the fetcher of broker %d failed", fetcher.leader)
            await asyncio.sleep(self._settings().backoff_ms / 1e3)
            if not fetcher.stopped:
                self._not_started.append(fetcher)
                self._changed.set()

    def _create(self, leader: BrokerId, number: int) -> FetcherLoop:
        connect = partial(self._connect, leader, f"fetch-{number}")
        fetcher = FetcherLoop(leader, connect, self._replication, self._settings)
        self._fetchers[(leader, number)] = fetcher
        self._not_started.append(fetcher)
        self._changed.set()
        return fetcher
