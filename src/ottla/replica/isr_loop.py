"""In-sync sets, proposed and committed: the one place where a leader changes them.

Owns the periodic look for followers that fell behind and the proposals in flight. Never decides
who is in sync (`leader.py` does) and never assumes that a proposal was taken: the store's
compare-and-set on the partition's state decides, and until it has, the high watermark counts both
sets, also when the store's answer never came. A leader that finds the state changed under it
waits for the controller to say what is now.

Lagging followers are looked for every half of `replica.lag.time.max.ms`, so that a stuck one
leaves within one and a half times the limit. Joining is checked on each of its fetches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ottla.model.ids import BrokerId
from ottla.model.metrics import Registry
from ottla.replica.flush_loop import FlushLoop
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.leader import Leadership
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)


class IsrWriter(Protocol):
    """All that a leader needs of the metadata store."""

    async def write(
        self, partition: HostedPartition, isr: frozenset[BrokerId], version: int
    ) -> int | None:
        """The new version of the partition's state, or None when it has changed under us."""


class IsrLoop:
    def __init__(
        self,
        hosted: HostedPartitions,
        writer: IsrWriter,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        flushes: FlushLoop,
        registry: Registry,
    ) -> None:
        self._hosted = hosted
        self._flushes = flushes
        self._writer = writer
        self._spawn = spawn
        self._shrinks = registry.counter(
            "kafka_server_replicamanager_isr_shrinks_total", "Replicas removed from an ISR."
        )
        self._expands = registry.counter(
            "kafka_server_replicamanager_isr_expands_total", "Replicas added to an ISR."
        )

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._hosted.environment.lag_max_ms / 2_000)
            self.shrink()

    def shrink(self) -> None:
        """Propose, for each partition led here, a set without those that fell behind."""
        environment = self._hosted.environment
        now_ms = environment.clock.mono_ms()
        for partition in self._hosted:
            leadership = partition.leadership
            if leadership is None or not leadership.followers:
                continue
            isr = leadership.isr_without_lagging(
                leader_end=partition.log.end_offset,
                now_ms=now_ms,
                lag_max_ms=environment.lag_max_ms,
            )
            if isr is not None:
                self.propose(partition, isr)

    def propose(self, partition: HostedPartition, isr: frozenset[BrokerId]) -> None:
        leadership = partition.require_leadership()
        leadership.proposed = isr
        self._spawn(self._commit(partition, leadership, isr))

    async def _commit(
        self, partition: HostedPartition, leadership: Leadership, isr: frozenset[BrokerId]
    ) -> None:
        before = leadership.isr
        version = await self._writer.write(partition, isr, leadership.version)
        leadership.proposed = None
        if partition.leadership is not leadership:  # deposed while the store was asked
            return
        if version is None:
            log.warning(
                "ISR change of %s rejected: its state in the metadata store has changed; "
                "waiting for LeaderAndIsr from the controller",
                partition.key,
            )
            return
        partition.set_isr(isr, version)
        if partition.waits_for_flush:
            self._flushes.request(partition)
        self._shrinks.value += len(before - isr)
        self._expands.value += len(isr - before)
        log.info("ISR of %s changed from %s to %s", partition.key, sorted(before), sorted(isr))
        self._hosted.advance(partition)
