"""Transactions that are open in a partition though no coordinator will end them.

Owns: telling them from those that go on. Never: ends one.

A partition's leader knows which producers have a transaction open there. Each should be known to
a coordinator, with that partition among those it will write an end to. One that is not holds
readers of committed records back for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.admin import ActiveProducer, Transaction
from ottla.client.admin.sync import Admin
from ottla.model.ids import TopicPartition


class OpenTransaction(NamedTuple):
    """A producer with a transaction open in a partition."""

    partition: TopicPartition
    producer: ActiveProducer


def open_transactions(admin: Admin, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """Every transaction that is open in these partitions."""
    found = admin.describe_producers(partitions).all()
    return [
        OpenTransaction(partition, producer)
        for partition, producers in found.items()
        for producer in producers
        if producer.transaction_start is not None
    ]


def find(admin: Admin, partitions: Iterable[TopicPartition]) -> list[OpenTransaction]:
    """Those of them that hang."""
    candidates = open_transactions(admin, partitions)
    if not candidates:
        return []
    producers = {one.producer.producer_id for one in candidates}
    listed = admin.list_transactions(producer_ids=producers)
    known = admin.describe_transactions([one.id for one in listed]).succeeded
    return list(hanging(candidates, known))


def hanging(
    candidates: Iterable[OpenTransaction], known: Mapping[str, Transaction]
) -> Iterator[OpenTransaction]:
    """The candidates that none of the known transactions will end."""
    expected = {
        (one.producer_id, partition) for one in known.values() for partition in one.partitions
    }
    for one in candidates:
        if (one.producer.producer_id, one.partition) not in expected:
            yield one
