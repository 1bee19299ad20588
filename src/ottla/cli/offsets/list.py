"""`ottla offsets list`: where partitions begin, end, or were at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import offset_spec, shown_time, topic_partitions
from ottla.cli.completion import topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show, show_outcomes
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.model.clock import SystemClock
from ottla.model.ids import TopicPartition


def list_(
    topics: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION,...]", help="Name the topics.", autocompletion=topic_names
        ),
    ],
    *,
    at: Annotated[
        str,
        typer.Option(help="Choose earliest, latest, max-timestamp or a time."),
    ] = "",
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Show the last stable offset as the end.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show first and end offsets of partitions, or offsets by time.

    Examples:
      ottla offsets list orders
      ottla offsets list orders:0 --at 2h
      ottla offsets list orders --at 2026-01-31T12:00:00Z --json
    """
    chosen = [topic_partitions("TOPIC", text) for text in topics]
    spec = offset_spec("--at", at, SystemClock().wall_ms()) if at else None
    with admin_connection(bootstrap) as admin:
        partitions = expand_partitions(admin, chosen)
        if spec is None:
            return _both_ends(admin, partitions, read_committed, as_json)
        outcomes = admin.list_offsets(
            dict.fromkeys(partitions, spec), read_committed=read_committed
        )
    rows = [
        (one.topic, one.partition, found.offset, shown_time(found.timestamp))
        for one, found in outcomes.succeeded.items()
    ]
    found = Table("offsets", ("topic", "partition", "offset", "timestamp"), rows)
    return show_outcomes(found, failed=outcomes.failed, as_json=as_json)


def expand_partitions(
    admin: Admin, chosen: list[tuple[str, tuple[int, ...] | None]]
) -> list[TopicPartition]:
    """Every partition that is meant; raises for a topic that is not there."""
    whole = [topic for topic, indexes in chosen if indexes is None]
    described = admin.describe_topics(whole).all()
    partitions = []
    for topic, indexes in chosen:
        if indexes is None:
            indexes = tuple(one.index for one in described[topic].partitions)
        partitions += [TopicPartition(topic, index) for index in indexes]
    return partitions


def _both_ends(
    admin: Admin, partitions: list[TopicPartition], read_committed: bool, as_json: bool
) -> int:
    first = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = admin.list_offsets(
        dict.fromkeys(partitions, OffsetSpec.LATEST), read_committed=read_committed
    )
    rows = []
    for one, end in last.succeeded.items():
        start = first.succeeded.get(one)
        if start is not None:
            count = (end.offset or 0) - (start.offset or 0)
            rows.append((one.topic, one.partition, start.offset, end.offset, count))
    columns = ("topic", "partition", "start", "end", "offsets")
    show(Table("offsets", columns, rows, ("offsets",)), as_json=as_json)
    return failures({**first.failed, **last.failed})
