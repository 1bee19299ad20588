"""An operator at work while everything else happens.

Owns one loop of operations, drawn at random: partitions get other replicas, or that is cancelled;
leaders are elected; replicas move between log directories; old records are deleted. What a cluster
in trouble refuses is not repeated. At the end every reassignment must complete by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from tests.sim import admin
from tests.sim.book import Book
from tests.sim.client import RETRIABLE
from tests.sim.cluster.routing import BROKERS, RoutedClient

ALTER_REPLICA_LOG_DIRS: Final = 34
ELECT_LEADERS: Final = 43
ALTER_REASSIGNMENTS: Final = 45
PREFERRED: Final = 0
REFUSALS: Final = RETRIABLE | {
    ErrorCode.none,
    ErrorCode.election_not_needed,
    ErrorCode.preferred_leader_not_available,
    ErrorCode.invalid_replica_assignment,  # a broker that is not alive
    ErrorCode.no_reassignment_in_progress,
    ErrorCode.replica_not_available,
    ErrorCode.log_dir_not_found,  # of a broker that has lost it
    ErrorCode.broker_not_available,
}


@dataclass(frozen=True, slots=True)
class Duties:
    """What an operator does in one simulation."""

    operations: int = 0
    pause_s: float = 0.5


class Operator:
    def __init__(
        self,
        client: RoutedClient,
        book: Book,
        duties: Duties,
        partitions: Mapping[TopicPartition, bool],
        log_dirs: list[str],
    ) -> None:
        """`partitions`: with whether their old records may be deleted."""
        self._client = client
        self._book = book
        self._duties = duties
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._dice = client.dice

    async def run(self) -> None:
        dice = self._dice
        operations = [self._reassign, self._reassign, self._cancel, self._elect, self._move]
        deletable = [tp for tp, loses_old in self._partitions.items() if loses_old]
        for _ in range(self._duties.operations):
            await asyncio.sleep(dice.random() * self._duties.pause_s)
            tp = dice.choice(sorted(self._partitions))
            try:
                if deletable and dice.random() < 0.2:
                    tp = dice.choice(deletable)
                    await admin.delete_records(self._client, tp, dice.choice([-1, 1, 5, 20]))
                else:
                    await dice.choice(operations)(tp)
            except OSError:
                continue

    async def _reassign(self, tp: TopicPartition) -> None:
        await self._set_replicas(tp, self._dice.sample(BROKERS, self._dice.choice([2, 2, 3])))

    async def _cancel(self, tp: TopicPartition) -> None:
        await self._set_replicas(tp, None)

    async def _set_replicas(self, tp: TopicPartition, replicas: list[int] | None) -> None:
        partition = {"partition_index": tp.partition, "replicas": replicas}
        fields = {"timeout": 3_000, "topics": [{"name": tp.topic, "partitions": [partition]}]}
        reply = await self._client.ask(ALTER_REASSIGNMENTS, 0, fields)
        codes = [part.error_code for topic in reply.responses for part in topic.partitions]
        self._accept(tp, f"replicas {replicas}", [reply.error_code, *codes])

    async def _elect(self, tp: TopicPartition) -> None:
        partitions = [{"topic": tp.topic, "partitions": [tp.partition]}]
        fields = {"election_type": PREFERRED, "topic_partitions": partitions, "timeout": 3_000}
        reply = await self._client.ask(ELECT_LEADERS, 2, fields)
        codes = [
            part.error_code
            for topic in reply.replica_election_results
            for part in topic.partition_result
        ]
        self._accept(tp, "election", [reply.error_code, *codes])

    async def _move(self, tp: TopicPartition) -> None:
        topics: list[dict[str, Any]] = [{"name": tp.topic, "partitions": [tp.partition]}]
        fields = {"dirs": [{"path": self._dice.choice(self._log_dirs), "topics": topics}]}
        broker = self._dice.choice(BROKERS)
        reply = await self._client.ask_broker(broker, ALTER_REPLICA_LOG_DIRS, 2, fields)
        codes = [part.error_code for topic in reply.results for part in topic.partitions]
        self._accept(tp, "log directory", codes)

    def _accept(self, tp: TopicPartition, operation: str, codes: list[ErrorCode]) -> None:
        for code in codes:
            if code not in REFUSALS:
                self._book.complain("refusal", str(tp), f"{operation}: {ErrorCode(code)!r}")
