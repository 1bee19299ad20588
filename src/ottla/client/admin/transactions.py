"""Transactions and their producers: listing, describing, fencing, aborting hanging ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import indexes_by_topic
from ottla.client.admin.session import Answers, Outcomes, Session, result_or_error
from ottla.client.cluster import To
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import ms

NO_TRANSACTION: Final = -1
PREPARED_NEVER_ENDS_MS: Final = 2**31 - 1
"""The timeout of a producer that takes part in two-phase commits."""
_SHORT_LIFE_MS: Final = 1  # of a producer that only fences others


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id, as its coordinator lists it."""

    id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of a transactional id; `started_ms` is None while it has no transaction."""

    id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]
    coordinator: int

    @property
    def two_phase(self) -> bool:
        """It never times out, because it may have been prepared."""
        return self.timeout_ms == PREPARED_NEVER_ENDS_MS


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer's state in a partition; `transaction_start` is None outside a transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int | None


@dataclass(frozen=True, slots=True)
class FencedProducer:
    """The new producer id and epoch of a transactional id; older ones are fenced."""

    producer_id: int
    producer_epoch: int


async def list_transactions(
    session: Session,
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """List transactional ids of all coordinators; `pattern` is a whole RE2 expression."""
    fields = {
        "state_filters": list(states),
        "producer_id_filters": list(producer_ids),
        "duration_filter": longer_than_ms,
        "transactional_id_pattern": pattern,
    }
    replies = await session.on_every_broker(api_keys.LIST_TRANSACTIONS, fields)
    return sorted(
        (
            TransactionListing(row.transactional_id, row.producer_id, row.transaction_state, broker)
            for broker, reply in replies.all().items()
            for row in reply.transaction_states
        ),
        key=lambda listing: listing.id,
    )


async def describe_transactions(session: Session, ids: Iterable[str]) -> Outcomes[str, Transaction]:
    """The state of transactions and their partitions."""

    async def ask(node: To, ids: list[str]) -> Answers[str, Transaction]:
        assert isinstance(node, int)
        reply = await session.ask(node, api_keys.DESCRIBE_TRANSACTIONS, {"transactional_ids": ids})
        return {
            row.transactional_id: result_or_error(row, _transaction(row, node))
            for row in reply.transaction_states
        }

    return await session.for_each(ids, session.transactions, ask)


async def describe_producers(
    session: Session, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, tuple[ActiveProducer, ...]]:
    """The active producers of each partition, as its leader knows them."""

    async def ask(
        node: To, partitions: list[TopicPartition]
    ) -> Answers[TopicPartition, tuple[ActiveProducer, ...]]:
        fields = {"topics": indexes_by_topic("partition_indexes", partitions)}
        reply = await session.ask(node, api_keys.DESCRIBE_PRODUCERS, fields)
        return {
            TopicPartition(topic.name, row.partition_index): result_or_error(
                row, tuple(map(_producer, row.active_producers))
            )
            for topic in reply.topics
            for row in topic.partitions
        }

    return await session.for_each(partitions, session.leaders, ask)


async def abort_transaction(
    session: Session, partition: TopicPartition, producer: ActiveProducer
) -> None:
    """Abort a hanging transaction in one partition: one that its coordinator no longer knows.

    Use `fence_producers` for a transaction that its coordinator knows.
    """
    marker = {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "transaction_result": False,
        "coordinator_epoch": max(producer.coordinator_epoch, 0),
        "transaction_version": 0,
        "topics": indexes_by_topic("partition_indexes", [partition]),
    }

    async def ask(node: To, partitions: list[TopicPartition]) -> Answers[TopicPartition, None]:
        reply = await session.ask(node, api_keys.WRITE_TXN_MARKERS, {"markers": [marker]})
        return {
            TopicPartition(topic.name, row.partition_index): result_or_error(row, None)
            for marker_row in reply.markers
            for topic in marker_row.topics
            for row in topic.partitions
        }

    (await session.for_each([partition], session.leaders, ask)).all()


async def fence_producers(session: Session, ids: Iterable[str]) -> Outcomes[str, FencedProducer]:
    """Fence the producers of transactional ids; their open transactions are aborted."""

    async def ask(node: To, ids: list[str]) -> Answers[str, FencedProducer]:
        return {id: await _fence(session, node, id) for id in ids}

    return await session.for_each(ids, session.transactions, ask)


async def _fence(session: Session, node: To, id: str) -> FencedProducer | KafkaError:
    fields = {"transactional_id": id, "transaction_timeout": _SHORT_LIFE_MS}
    reply = await session.ask(node, api_keys.INIT_PRODUCER_ID, fields)
    return result_or_error(reply, FencedProducer(reply.producer_id, reply.producer_epoch))


def _transaction(row: KioStruct, coordinator: int) -> Transaction:
    started_ms = ms(row.transaction_start_time)
    return Transaction(
        row.transactional_id,
        row.transaction_state,
        row.producer_id,
        row.producer_epoch,
        ms(row.transaction_timeout),
        started_ms if started_ms >= 0 else None,
        tuple(
            TopicPartition(topic.topic, index) for topic in row.topics for index in topic.partitions
        ),
        coordinator,
    )


def _producer(row: KioStruct) -> ActiveProducer:
    start = row.current_txn_start_offset
    return ActiveProducer(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.coordinator_epoch,
        None if start == NO_TRANSACTION else start,
    )
