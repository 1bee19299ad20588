"""`ottla transactions find-hanging`: open in a partition, though no coordinator knows of it."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connect import connected
from ottla.cli.console import Table, show
from ottla.cli.names import duration_ms, shown_time, topic_partitions
from ottla.cli.offsets.list import expanded
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.transactions.hanging import OpenTransaction, find
from ottla.model.clock import SystemClock

COLUMNS = ("topic", "partition", "producer id", "epoch", "start offset", "last record")


def find_hanging(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC[:PARTITION,...]", help="All of them by default."),
    ] = None,
    *,
    older_than: Annotated[
        str, typer.Option(metavar="15m", help="Only those whose last record is older.")
    ] = "15m",
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Find transactions that are open in a partition though no coordinator will end them.

    Examples:
      ottla transactions find-hanging
      ottla transactions find-hanging orders --older-than 5m
    """
    latest_ms = SystemClock().wall_ms() - duration_ms("--older-than", older_than)
    chosen = [topic_partitions("TOPIC", text) for text in topics or ()]
    with connected(bootstrap) as admin:
        if not chosen:
            chosen = [(name, None) for name in admin.list_topics(internal=True)]
        found = find(admin, expanded(admin, chosen))
    rows = [_row(one) for one in found if one.producer.last_timestamp <= latest_ms]
    show(Table("hanging", COLUMNS, rows), as_json=as_json)
    return 0


def _row(one: OpenTransaction) -> tuple[object, ...]:
    return (
        one.partition.topic,
        one.partition.partition,
        one.producer.producer_id,
        one.producer.producer_epoch,
        one.producer.transaction_start,
        shown_time(one.producer.last_timestamp),
    )
