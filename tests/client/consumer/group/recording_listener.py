"""A rebalance listener that records what it is told."""

from __future__ import annotations

from ottla.client.consumer.rebalance_listener import RebalanceListener
from ottla.model.ids import TopicPartition


class RecordingListener(RebalanceListener):
    def __init__(self) -> None:
        self.pages: list[str] = []

    def _write(self, word: str, partitions: frozenset[TopicPartition]) -> None:
        self.pages.append(f"{word} {','.join(map(str, sorted(partitions)))}".strip())

    async def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._write("assigned", partitions)

    def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._write("revoked", partitions)

    def on_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._write("lost", partitions)
