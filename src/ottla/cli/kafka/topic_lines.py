"""The lines of `kafka-topics.sh --describe`, as scripts expect them.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.admin import Partition, Reassignment, Topic
from ottla.log.directories.partition_metadata import id_text
from ottla.model.ids import TopicPartition


class Filters(NamedTuple):
    """Which partitions are shown; any of the first four leaves the topics' lines out."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    overrides_only: bool = False

    @property
    def needs_min_isr(self) -> bool:
        return self.under_min_isr or self.at_min_isr

    @property
    def of_partitions(self) -> bool:
        return self.under_replicated or self.unavailable or self.needs_min_isr

    def shows(self, partition: Partition, least: int) -> bool:
        in_sync = len(partition.isr)
        return (
            not self.of_partitions
            or (self.under_replicated and partition.under_replicated)
            or (self.unavailable and partition.leader is None)
            or (self.under_min_isr and (partition.leader is None or in_sync < least))
            or (self.at_min_isr and in_sync == least)
        )


def lines_of(
    topic: Topic,
    settings: Mapping[str, str | None],
    filters: Filters,
    least: int,
    moves: Mapping[TopicPartition, Reassignment],
) -> Iterator[str]:
    """The topic's line, unless only partitions are wanted, and those of its partitions."""
    if not filters.of_partitions and (settings or not filters.overrides_only):
        configs = ",".join(f"{name}={value}" for name, value in settings.items())
        named = f"\tTopicId: {id_text(topic.id)}" if topic.id is not None else ""
        yield (
            f"Topic: {topic.name}{named}\tPartitionCount: {len(topic.partitions)}"
            f"\tReplicationFactor: {topic.replication_factor}\tConfigs: {configs}"
        )
    if not filters.overrides_only:
        for one in topic.partitions:
            if filters.shows(one, least):
                yield partition_line(
                    topic.name, one, moves.get(TopicPartition(topic.name, one.index))
                )


def partition_line(topic: str, partition: Partition, move: Reassignment | None) -> str:
    leader = "none" if partition.leader is None else partition.leader
    moving = (
        ""
        if move is None
        else (f"\tAdding Replicas: {_ids(move.adding)}\tRemoving Replicas: {_ids(move.removing)}")
    )
    return (
        f"\tTopic: {topic}\tPartition: {partition.index}\tLeader: {leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}{moving}"
        f"\tElr: {_maybe(partition.elr)}\tLastKnownElr: {_maybe(partition.last_known_elr)}"
    )


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _maybe(brokers: Iterable[int] | None) -> str:
    return "N/A" if brokers is None else _ids(brokers)
