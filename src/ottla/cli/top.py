"""`ottla top`: what a cluster is doing now."""

from __future__ import annotations

from threading import Event
from typing import Annotated

import typer

from ottla.cli.activity import Sample, rates
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, as_value, line, show
from ottla.cli.groups.lag import lags
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.watch_view import EVERY_S, Interval, forever, show_repeatedly
from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.model.clock import SystemClock
from ottla.model.ids import TopicPartition


def top(
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Measure over one interval, print it and exit.")
    ] = False,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Show every partition, not only topics.")
    ] = False,
    interval: Interval = EVERY_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show records per second of topics and the lag of groups.

    The busiest come first. With --json it is one line for each look.

    Examples:
      ottla top --once
      ottla top --once --json --interval 0.5
    """
    with admin_connection(bootstrap, quiet=True) as admin:
        before = sample(admin)

        def look() -> list[Table]:
            nonlocal before
            now = sample(admin)
            tables = rates(before, now, partitions=partitions)
            before = now
            return tables

        pause = Event().wait
        pause(interval)
        if not once:
            return show_repeatedly(look, as_json=as_json, every_s=interval, wait=forever())
        found = look()
    if as_json:
        print(line(as_value(*found)))
    else:
        show(*found, as_json=False)
    return 0


def sample(admin: Admin) -> Sample:
    """Where every partition begins and ends, and what every group has committed, now."""
    topics = admin.describe_topics(admin.list_topics(internal=False)).succeeded.values()
    partitions = [
        TopicPartition(topic.name, partition.index)
        for topic in topics
        for partition in topic.partitions
    ]
    ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)).succeeded
    groups = admin.describe_groups([group.id for group in admin.list_groups()]).succeeded.values()
    return Sample(
        SystemClock().mono_ms(),
        {partition: end.offset or 0 for partition, end in ends.items()},
        {group.id: (group.state, lags(admin, group)) for group in groups},
    )
