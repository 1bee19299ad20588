"""`ottla transactions find-hanging`: open for good, or decided and not ending."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from ottla.cli.argument_parsing import duration_ms, shown_time, topic_partitions
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.transactions.hanging import (
    DecidedTransaction,
    OpenTransaction,
    find,
    find_decided,
)
from ottla.model.clock import SystemClock
from ottla.model.ids import TopicPartition

COLUMNS = (
    "topic",
    "partition",
    "producer id",
    "epoch",
    "start offset",
    "last record",
    "state",
    "transactional id",
)
UNKNOWN = "unknown to its coordinator"


def find_hanging(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC[:PARTITION,...]", help="Name the topics; default: all."),
    ] = None,
    *,
    older_than: Annotated[
        str, typer.Option(metavar="15m", help="Show only those whose last record is older.")
    ] = "15m",
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Find transactions that no coordinator ends, and decided ones that hang.

    A decided one (PrepareCommit, PrepareAbort) is shown with each partition that still lacks its
    marker; what to do about it is said on stderr.

    Examples:
      ottla transactions find-hanging
      ottla transactions find-hanging orders --older-than 5m
    """
    latest_ms = SystemClock().wall_ms() - duration_ms("--older-than", older_than)
    selections = [topic_partitions("TOPIC", text) for text in topics or ()]
    with admin_connection(bootstrap) as admin:
        if not selections:
            selections = [(name, None) for name in admin.list_topics(internal=True)]
        partitions = expand_partitions(admin, selections)
        unknown = find(admin, partitions)
        decided = [
            transaction
            for transaction in find_decided(admin, partitions)
            if _is_meant(transaction, partitions)
        ]
    decided = [
        transaction
        for transaction in decided
        if (transaction.transaction.started_ms or 0) <= latest_ms
    ]
    rows = [
        _row(transaction)
        for transaction in unknown
        if transaction.producer.last_timestamp <= latest_ms
    ]
    for transaction in decided:
        rows += _decided_rows(transaction)
    show(Table("hanging", COLUMNS, rows), as_json=as_json)
    for transaction in decided:
        stuck = transaction.transaction
        print(f"{stuck.id} is in {stuck.state}: {transaction.what_to_do}", file=sys.stderr)
    return 0


def _is_meant(decided: DecidedTransaction, partitions: Iterable[TopicPartition]) -> bool:
    return not set(partitions).isdisjoint(decided.transaction.partitions)


def _decided_rows(decided: DecidedTransaction) -> list[tuple[object, ...]]:
    stuck = decided.transaction
    if decided.missing:
        return [_row(where, stuck.state, stuck.id) for where in decided.missing]
    started = "" if stuck.started_ms is None else shown_time(stuck.started_ms)
    who = (stuck.producer_id, stuck.producer_epoch)
    return [("", "", *who, "", started, stuck.state, stuck.id)]


def _row(transaction: OpenTransaction, state: str = UNKNOWN, id: str = "") -> tuple[object, ...]:
    return (
        transaction.partition.topic,
        transaction.partition.partition,
        transaction.producer.producer_id,
        transaction.producer.producer_epoch,
        transaction.producer.transaction_start,
        shown_time(transaction.producer.last_timestamp),
        state,
        id,
    )
