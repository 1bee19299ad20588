"""`ottla topics list` and `describe`: topics, their partitions and settings."""

from __future__ import annotations

import json
from typing import Annotated, NamedTuple

import typer

from ottla.cli.argument_parsing import matching
from ottla.cli.argument_parsing import pattern as read_pattern
from ottla.cli.completion import topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show_outcomes
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.watch_view import EVERY_S, Interval, Watch, forever, show_repeatedly
from ottla.client.admin import Resource, Topic
from ottla.client.admin.sync import Admin


def list_(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN", help="Match the whole name with this regular expression."
        ),
    ] = None,
    *,
    internal: Annotated[bool, typer.Option("--internal", help="Include internal topics.")] = False,
    watch: Watch = False,
    interval: Interval = EVERY_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List topics, one per line.

    Examples:
      ottla topics list
      ottla topics list 'ord.*' --json
    """
    expression = None if pattern is None else read_pattern("PATTERN", pattern)
    with admin_connection(bootstrap, quiet=watch) as admin:
        if watch:
            return show_repeatedly(
                lambda: [_table(matching(admin.list_topics(internal=internal), expression))],
                as_json=as_json,
                every_s=interval,
                wait=forever(),
            )
        names = matching(admin.list_topics(internal=internal), expression)
    if as_json:
        print(json.dumps(names, indent=2))
    elif names:
        print("\n".join(names))
    return 0


def _table(names: list[str]) -> Table:
    return Table("topics", ("topic",), [(name,) for name in names])


TOPICS = ("topic", "id", "partitions", "replication factor", "internal", "configs")
PARTITIONS = ("topic", "partition", "leader", "epoch", "replicas", "in sync", "offline")

LEAST = ("internal", "replication factor")


def describe(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC", help="Name the topics; default: all.", autocompletion=topic_names
        ),
    ] = None,
    *,
    under_replicated: Annotated[
        bool, typer.Option("--under-replicated", help="Show only under-replicated partitions.")
    ] = False,
    unavailable: Annotated[
        bool, typer.Option("--unavailable", help="Show only partitions without a leader.")
    ] = False,
    watch: Watch = False,
    interval: Interval = EVERY_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show topics: their settings and the replicas of each partition.

    Examples:
      ottla topics describe orders
      ottla topics describe --under-replicated
    """
    only = Only(under_replicated, unavailable)
    with admin_connection(bootstrap, quiet=watch) as admin:
        if watch:
            return show_repeatedly(
                lambda: _tables(admin, names, only)[0],
                as_json=as_json,
                every_s=interval,
                wait=forever(),
            )
        tables, failed = _tables(admin, names, only)
    return show_outcomes(*tables, failed=failed, as_json=as_json)


class Only(NamedTuple):
    """Which partitions are shown; all of them where neither is asked for."""

    under_replicated: bool
    unavailable: bool


def _tables(
    admin: Admin, names: list[str] | None, only: Only
) -> tuple[list[Table], dict[str, Exception]]:
    """Topics and their partitions, and the topics that could not be described."""
    outcomes = admin.describe_topics(names or admin.list_topics(internal=True))
    topics = list(outcomes.succeeded.values())
    partitions = [
        (
            topic.name,
            partition.index,
            partition.leader,
            partition.leader_epoch,
            partition.replicas,
            partition.isr,
            partition.offline,
        )
        for topic in topics
        for partition in topic.partitions
        if (not only.under_replicated or partition.under_replicated)
        and (not only.unavailable or partition.leader is None)
    ]
    tables = [Table("partitions", PARTITIONS, partitions, ("epoch", "offline"))]
    if not any(only):
        configs = overrides(admin, topics)
        rows = [_row(topic, configs[topic.name]) for topic in topics]
        tables.insert(0, Table("topics", TOPICS, rows, LEAST))
    return tables, outcomes.failed


def overrides(admin: Admin, topics: list[Topic]) -> dict[str, dict[str, str | None]]:
    """The settings of topics that are not the default, by topic."""
    found = admin.describe_configs([Resource.topic(topic.name) for topic in topics]).all()
    return {
        resource.name: {one.name: one.value for one in entries.values() if not one.is_default}
        for resource, entries in found.items()
    }


def _row(topic: Topic, configs: dict[str, str | None]) -> tuple[object, ...]:
    return (
        topic.name,
        str(topic.id),
        len(topic.partitions),
        topic.replication_factor,
        topic.internal,
        configs,
    )
