"""Transactions that hang: no coordinator will end them, or they are decided and do not end.

Owns: telling them from those that go on. Never: ends one.

A partition's leader knows which producers have a transaction open there. Each should be known to
a coordinator, with that partition among those it will write an end to. One that is not holds
readers of committed records back for ever.

A transaction whose end is decided (PrepareCommit, PrepareAbort) ends within milliseconds, unless a
partition cannot take its marker. Two looks, `LOOK_AGAIN_S` apart, tell those that are stuck from
those that are just ending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.client.admin import ActiveProducer, Transaction
from ottla.client.admin.sync import Admin
from ottla.model.ids import TopicPartition

DECIDED: Final = ("PrepareCommit", "PrepareAbort")
LOOK_AGAIN_S: Final = 2.0


class OpenTransaction(NamedTuple):
    """A producer with a transaction open in a partition."""

    partition: TopicPartition
    producer: ActiveProducer


class DecidedTransaction(NamedTuple):
    """A transaction whose end is decided, and where it is still open: markers are missing there."""

    transaction: Transaction
    missing: tuple[OpenTransaction, ...]

    @property
    def what_to_do(self) -> str:
        coordinator = self.transaction.coordinator
        advice = f"broker {coordinator} retries by itself; its log says why it cannot, under "
        advice += f'"transaction {self.transaction.id}": '
        if self.missing:
            where = ", ".join(str(open_transaction.partition) for open_transaction in self.missing)
            return f"{advice}make {where} writable again, or delete the topic"
        return f"{advice}make the partitions of the transaction writable again"


def open_transactions(admin: Admin, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """Every transaction that is open in these partitions."""
    by_partition = admin.describe_producers(partitions).all()
    return [
        OpenTransaction(partition, producer)
        for partition, producers in by_partition.items()
        for producer in producers
        if producer.transaction_start is not None
    ]


def find(admin: Admin, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """Those of them that no coordinator will end."""
    candidates = open_transactions(admin, partitions)
    if not candidates:
        return []
    return find_unknown(admin, candidates)


def find_unknown(admin: Admin, candidates: Iterable[OpenTransaction]) -> list[OpenTransaction]:
    """Those that no coordinator will end."""
    candidates = list(candidates)
    producers = {one.producer.producer_id for one in candidates}
    listed = admin.list_transactions(producer_ids=producers)
    described = admin.describe_transactions([one.id for one in listed]).succeeded
    return list(hanging(candidates, described))


def hanging(
    candidates: Iterable[OpenTransaction], described: Mapping[str, Transaction]
) -> Iterator[OpenTransaction]:
    """The candidates that none of the known transactions will end."""
    expected = {
        (candidate.producer_id, partition)
        for candidate in described.values()
        for partition in candidate.partitions
    }
    for candidate in candidates:
        if (candidate.producer.producer_id, candidate.partition) not in expected:
            yield candidate


def find_decided(
    admin: Admin, partitions: Iterable[TopicPartition], look_again_s: float = LOOK_AGAIN_S
) -> list[DecidedTransaction]:
    """Every decided transaction that does not end, with those of these partitions it lacks."""
    first = _decided_now(admin)
    if not first:
        return []
    admin.wait_for(lambda _: asyncio.sleep(look_again_s))
    stuck = list(still_decided(first, _decided_now(admin)))
    candidates = open_transactions(admin, partitions) if stuck else []
    return [
        DecidedTransaction(transaction, tuple(missing(transaction, candidates)))
        for transaction in stuck
    ]


def _decided_now(admin: Admin) -> Mapping[str, Transaction]:
    listed = admin.list_transactions(states=DECIDED)
    return admin.describe_transactions([one.id for one in listed]).succeeded


def still_decided(
    first: Mapping[str, Transaction], second: Mapping[str, Transaction]
) -> Iterator[Transaction]:
    """Those of the first look that are the very same in the second."""
    for id, transaction in sorted(first.items()):
        if transaction.state in DECIDED and second.get(id) == transaction:
            yield transaction


def missing(
    decided: Transaction, candidates: Iterable[OpenTransaction]
) -> Iterator[OpenTransaction]:
    """Where it is still open."""
    for candidate in candidates:
        ours = candidate.producer.producer_id == decided.producer_id
        if ours and candidate.partition in decided.partitions:
            yield candidate
