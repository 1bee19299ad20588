"""A controller that knows AlterPartition only: a compare-and-set on the partition's state."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, Final

from ottla.metadata.cache import MetadataCache
from ottla.model.errors import ErrorCode
from ottla.model.ids import BrokerId, TopicPartition
from ottla.protocol.wire import Fields
from ottla.store import paths
from ottla.store.nodes import StateNode
from ottla.store.port import BadVersion, NoNode, SessionExpired, Store, StoreUnavailable

log = logging.getLogger(__name__)

RETRY_S: Final = 0.5


class IsrController:
    def __init__(self, store: Store, metadata: MetadataCache) -> None:
        self._store = store
        self._metadata = metadata

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
            return new_version
