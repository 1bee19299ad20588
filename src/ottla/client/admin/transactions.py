"""Transactions and the producers behind them: which are open, and ending one that hangs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.admin import api_keys
from ottla.client.admin.offsets import indexes_by_topic
from ottla.client.admin.session import Answers, Outcomes, Session, judged
from ottla.client.cluster import To
from ottla.model.errors import KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.wire import ms

NO_TRANSACTION: Final = -1
PREPARED_NEVER_ENDS_MS: Final = 2**31 - 1
"""The timeout of a producer that takes part in two-phase commits."""
_SHORT_LIFE_MS: Final = 1  # of a producer that comes only to fence others


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id, as its coordinator lists it."""

    id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """How the transaction of a transactional id stands; `started_ms` is None while it has none."""

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
        """It waits for its decision for ever, because it may have been prepared."""
        return self.timeout_ms == PREPARED_NEVER_ENDS_MS


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer as a partition remembers it; `transaction_start` is None outside of one."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int | None


@dataclass(frozen=True, slots=True)
class FencedProducer:
    """Who holds a transactional id now; all before are refused."""

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
    """Every transactional id that any broker coordinates; `pattern` is a whole RE2 expression."""
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
        key=lambda one: one.id,
    )


async def describe_transactions(session: Session, ids: Iterable[str]) -> Outcomes[str, Transaction]:
    """How transactions stand, and which partitions they touch."""

    async def ask(node: To, ids: list[str]) -> Answers[str, Transaction]:
        assert isinstance(node, int)
        reply = await session.ask(node, api_keys.DESCRIBE_TRANSACTIONS, {"transactional_ids": ids})
        return {
            row.transactional_id: judged(row, _transaction(row, node))
            for row in reply.transaction_states
        }

    return await session.each(ids, session.transactions, ask)


async def describe_producers(
    session: Session, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, tuple[ActiveProducer, ...]]:
    """The producers that each partition's leader remembers."""

    async def ask(
        node: To, partitions: list[TopicPartition]
    ) -> Answers[TopicPartition, tuple[ActiveProducer, ...]]:
        fields = {"topics": indexes_by_topic("partition_indexes", partitions)}
        reply = await session.ask(node, api_keys.DESCRIBE_PRODUCERS, fields)
        return {
            TopicPartition(topic.name, row.partition_index): judged(
                row, tuple(map(_producer, row.active_producers))
            )
            for topic in reply.topics
            for row in topic.partitions
        }

    return await session.each(partitions, session.leaders, ask)


async def abort_transaction(
    session: Session, partition: TopicPartition, producer: ActiveProducer
) -> None:
    """Write the end of a transaction that hangs in one partition: its coordinator forgot it.

    Only for such: a transaction that its coordinator knows is ended by `fence_producers`.
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
            TopicPartition(topic.name, row.partition_index): judged(row, None)
            for told in reply.markers
            for topic in told.topics
            for row in topic.partitions
        }

    (await session.each([partition], session.leaders, ask)).all()


async def fence_producers(session: Session, ids: Iterable[str]) -> Outcomes[str, FencedProducer]:
    """Take transactional ids from whoever has them; what they left open is aborted."""

    async def ask(node: To, ids: list[str]) -> Answers[str, FencedProducer]:
        return {id: await _fenced(session, node, id) for id in ids}

    return await session.each(ids, session.transactions, ask)


async def _fenced(session: Session, node: To, id: str) -> FencedProducer | KafkaError:
    fields = {"transactional_id": id, "transaction_timeout": _SHORT_LIFE_MS}
    reply = await session.ask(node, api_keys.INIT_PRODUCER_ID, fields)
    return judged(reply, FencedProducer(reply.producer_id, reply.producer_epoch))


def _transaction(row: Any, coordinator: int) -> Transaction:
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


def _producer(row: Any) -> ActiveProducer:
    start = row.current_txn_start_offset
    return ActiveProducer(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.coordinator_epoch,
        None if start == NO_TRANSACTION else start,
    )
