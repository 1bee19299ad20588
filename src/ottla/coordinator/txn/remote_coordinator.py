"""Verifies and adds partitions of transactions that another broker coordinates.

Owns the AddPartitionsToTxn (24) requests to other coordinators, and the guard of each that is
pending: if a marker of the producer reaches the partition meanwhile, the transaction may have ended
after the coordinator's reply was sent. A batch appended then would start a transaction that nobody
ends, so it is refused.

Never decides: the coordinator's error code is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from ottla.coordinator.request_queues import OtherBrokers, RequestQueues
from ottla.coordinator.txn.state import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER, TRANSACTION_STATE, BrokerId, ProducerId, TopicPartition
from ottla.protocol.schema import KioMessage
from ottla.protocol.wire import Fields

ADD_PARTITIONS_TO_TXN: Final = 24
REPLY_MS: Final = 10_000


class PartitionCheck(NamedTuple):
    """A partition that is to be in the open transaction of a producer."""

    id: str
    producer: Producer
    partition: TopicPartition
    adds: bool
    """The partition is added (transactions v2); otherwise the client has added it."""

    @property
    def transaction(self) -> tuple[Producer, bool]:
        """Checks with the same id and these values can share one entry of a request."""
        return self.producer, self.adds


class MarkerGuard:
    """Whether a marker was written while a check was pending."""

    __slots__ = ("has_marker",)

    def __init__(self) -> None:
        self.has_marker = False

    def result(self, check: PartitionCheck, code: ErrorCode) -> ErrorCode:
        """The result of the check.

        Where the partition was added the marker has a newer epoch, and the append is refused.
        """
        if code is ErrorCode.none and self.has_marker and not check.adds:
            return ErrorCode.invalid_txn_state
        return code


class MarkerGuards:
    """The guards of this broker, by partition and producer."""

    def __init__(self) -> None:
        self._guards: dict[tuple[TopicPartition, ProducerId], list[MarkerGuard]] = {}

    def open(self, partition: TopicPartition, producer: ProducerId) -> MarkerGuard:
        guard = MarkerGuard()
        self._guards.setdefault((partition, producer), []).append(guard)
        return guard

    def close(self, partition: TopicPartition, producer: ProducerId, guard: MarkerGuard) -> None:
        guards = self._guards[partition, producer]
        guards.remove(guard)
        if not guards:
            del self._guards[partition, producer]

    @contextmanager
    def guard(self, partition: TopicPartition, producer: ProducerId) -> Iterator[MarkerGuard]:
        guard = self.open(partition, producer)
        try:
            yield guard
        finally:
            self.close(partition, producer, guard)

    def on_marker(self, partition: TopicPartition, producer: ProducerId) -> None:
        """A marker is about to be written to a partition led by this broker."""
        if self._guards:
            for guard in self._guards.get((partition, producer), ()):
                guard.has_marker = True


class RemoteCoordinators:
    def __init__(self, broker_id: BrokerId, others: OtherBrokers) -> None:
        self.guards = MarkerGuards()
        self._broker_id = broker_id
        self._others = others
        self._queues = RequestQueues[PartitionCheck, ErrorCode](
            "transaction verification",
            self._send,
            lambda _: ErrorCode.network_exception,
            others.spawn,
        )

    def ask(
        self, state_partition: int, check: PartitionCheck, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Ask the leader of this partition of `__transaction_state`.

        `on_done` is called once, with the coordinator's error code for the checked partition.
        """
        state = TopicPartition(TRANSACTION_STATE, state_partition)
        metadata = self._others.metadata.image.partition(state)
        if metadata is None or metadata.leader <= NO_BROKER:
            on_done(ErrorCode.coordinator_not_available)
        elif metadata.leader == self._broker_id:  # this broker has not loaded the partition yet
            on_done(ErrorCode.not_coordinator)
        else:
            self._queues.put(metadata.leader, check, on_done)

    def close(self) -> None:
        self._queues.close()

    async def _send(self, broker: BrokerId, checks: Sequence[PartitionCheck]) -> list[ErrorCode]:
        results: dict[PartitionCheck, ErrorCode] = {}
        for part in _compatible(checks):
            reply = await self._others.ask(broker, ADD_PARTITIONS_TO_TXN, _fields(part), REPLY_MS)
            results |= _results(part, reply.body)
        return [results[check] for check in checks]


def _compatible(checks: Iterable[PartitionCheck]) -> list[list[PartitionCheck]]:
    """The checks, split so that no part has two different producers of one transactional id.

    A reply names only the id. Nearly always there is one part.
    """
    parts: list[tuple[dict[str, tuple[Producer, bool]], list[PartitionCheck]]] = []
    for check in checks:
        for transactions, part in parts:
            if transactions.setdefault(check.id, check.transaction) == check.transaction:
                part.append(check)
                break
        else:
            parts.append(({check.id: check.transaction}, [check]))
    return [part for _, part in parts]


def _fields(checks: Iterable[PartitionCheck]) -> Fields:
    by_id: dict[str, list[PartitionCheck]] = {}
    for check in checks:
        by_id.setdefault(check.id, []).append(check)
    return {
        "transactions": [
            {
                "transactional_id": id,
                "producer_id": some[0].producer.id,
                "producer_epoch": some[0].producer.epoch,
                "verify_only": not some[0].adds,
                "topics": _topics(dict.fromkeys(check.partition for check in some)),
            }
            for id, some in by_id.items()
        ]
    }


def _topics(partitions: Iterable[TopicPartition]) -> list[Fields]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return [{"name": name, "partitions": indexes} for name, indexes in topics.items()]


def _results(
    checks: Iterable[PartitionCheck], reply: KioMessage
) -> dict[PartitionCheck, ErrorCode]:
    top_level: ErrorCode = reply.error_code
    if top_level is not ErrorCode.none:
        return dict.fromkeys(checks, top_level)
    codes = {
        (result.transactional_id, topic.name, partition.partition_index): (
            partition.partition_error_code
        )
        for result in reply.results_by_transaction
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
    return {
        check: codes.get((check.id, *check.partition), ErrorCode.network_exception)
        for check in checks
    }
