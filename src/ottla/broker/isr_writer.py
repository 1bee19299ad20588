"""A leader's in-sync set, written to the metadata store and announced.

Owns the compare-and-set on a partition's state and the pacing of announcements: the controller
hears of changed sets in one sequential node, at once after a quiet spell and at the latest after a
minute, so that a flapping follower does not flood it.
"""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, Final

from ottla.metadata.cache import MetadataCache
from ottla.model.clock import Clock
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.wire import Fields
from ottla.store import paths
from ottla.store.nodes import PartitionsNode, StateNode
from ottla.store.port import BadVersion, NoNode, SessionExpired, Store, StoreUnavailable

log = logging.getLogger(__name__)

CHECK_INTERVAL_MS: Final = 2_500
QUIET_MS: Final = 5_000
LATEST_MS: Final = 60_000
RETRY_S: Final = 0.5


class StoreIsrWriter:
    """Writes in-sync sets to the store; `run` announces them."""

    def __init__(self, store: Store, metadata: MetadataCache, clock: Clock) -> None:
        self._store = store
        self._metadata = metadata
        self._clock = clock
        self._changed: set[TopicPartition] = set()
        self._changed_at_ms = 0
        self._announced_at_ms = clock.mono_ms()

    async def ask(self, _: int, fields: Fields, __: int) -> Any:
        """Answer AlterPartition."""
        leader = BrokerId(fields["broker_id"])
        topics = [
            SimpleNamespace(
                topic_id=topic["topic_id"],
                partitions=[
                    await self._alter(topic["topic_id"], leader, partition)
                    for partition in topic["partitions"]
                ],
            )
            for topic in fields["topics"]
        ]
        return SimpleNamespace(error_code=ErrorCode.none, topics=topics)

    async def _alter(self, topic_id: Any, leader: BrokerId, proposed: Fields) -> Any:
        index, epoch = proposed["partition_index"], proposed["leader_epoch"]
        topic = self._metadata.image.names.get(topic_id)
        key = TopicPartition(topic or "", index)
        isr = frozenset(map(BrokerId, proposed["new_isr"]))
        version = await self._write(key, (leader, epoch), isr, proposed["partition_epoch"])
        taken = version is not None
        return SimpleNamespace(
            partition_index=index,
            error_code=ErrorCode.none if taken else ErrorCode.invalid_update_version,
            leader_id=leader,
            leader_epoch=epoch,
            isr=sorted(isr),
            partition_epoch=version,
        )

    async def _write(
        self,
        key: TopicPartition,
        leader: tuple[BrokerId, int],
        isr: frozenset[BrokerId],
        version: int,
    ) -> int | None:
        """The new version of the partition's state, or None when it has changed under us."""
        path = paths.partition_state(key)
        while True:
            try:
                node = await self._store.get(path)
                if node is None:
                    return None
                state = StateNode.decode(node.data)
                if (state.leader, state.leader_epoch) != leader:
                    return None
                if node.version == version + 1 and frozenset(state.isr) == isr:
                    return node.version  # an earlier write succeeded though its reply was lost
                updated = state._replace(isr=tuple(sorted(isr)))
                new_version = await self._store.set(path, updated.encode(), version)
            except (BadVersion, NoNode):
                return None
            except (StoreUnavailable, SessionExpired) as error:
                log.warning(
                    "cannot write ISR of %s to the metadata store: %s; retrying in %s s",
                    key,
                    error,
                    RETRY_S,
                )
                await asyncio.sleep(RETRY_S)
                continue
            self._changed.add(key)
            self._changed_at_ms = self._clock.mono_ms()
            return new_version

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL_MS / 1000)
            if announcement_due(
                self._clock.mono_ms(),
                bool(self._changed),
                self._changed_at_ms,
                self._announced_at_ms,
            ):
                await self.announce()

    async def announce(self) -> None:
        changed, self._changed = self._changed, set()
        try:
            await self._store.create(
                f"{paths.ISR_CHANGES}/{paths.ISR_CHANGE_PREFIX}",
                PartitionsNode(tuple(sorted(changed))).encode(),
                sequential=True,
            )
        except (StoreUnavailable, SessionExpired):
            self._changed |= changed
            return
        self._announced_at_ms = self._clock.mono_ms()


def announcement_due(now_ms: int, pending: bool, changed_at_ms: int, announced_at_ms: int) -> bool:
    """Something is pending, and either it has been quiet or the last word was long ago."""
    quiet = now_ms - changed_at_ms > QUIET_MS
    late = now_ms - announced_at_ms > LATEST_MS
    return pending and (quiet or late)
