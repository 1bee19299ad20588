"""`ottla topics describe`: partitions with their leaders, replicas and who is in sync."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connect import connected
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import Resource, Topic
from ottla.client.admin.sync import Admin

TOPICS = ("topic", "id", "partitions", "replication factor", "internal", "configs")
PARTITIONS = ("topic", "partition", "leader", "epoch", "replicas", "in sync", "offline")

LEAST = ("internal", "replication factor")


def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="All of them by default.")
    ] = None,
    *,
    under_replicated: Annotated[
        bool, typer.Option("--under-replicated", help="Only partitions with copies behind.")
    ] = False,
    unavailable: Annotated[
        bool, typer.Option("--unavailable", help="Only partitions without a leader.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show topics: their settings, and where each partition is.

    Examples:
      ottla topics describe orders
      ottla topics describe --under-replicated
    """
    with connected(bootstrap) as admin:
        outcomes = admin.describe_topics(names or admin.list_topics(internal=True))
        topics = list(outcomes.succeeded.values())
        configs = overrides(admin, topics)
    partitions = [
        (topic.name, one.index, one.leader, one.leader_epoch, one.replicas, one.isr, one.offline)
        for topic in topics
        for one in topic.partitions
        if (not under_replicated or one.under_replicated)
        and (not unavailable or one.leader is None)
    ]
    tables = [Table("partitions", PARTITIONS, partitions, ("epoch", "offline"))]
    if not (under_replicated or unavailable):
        tables.insert(
            0, Table("topics", TOPICS, [_row(one, configs[one.name]) for one in topics], LEAST)
        )
    show(*tables, as_json=as_json)
    return failures(outcomes.failed)


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
