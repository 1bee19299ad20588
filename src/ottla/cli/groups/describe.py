"""`ottla groups describe`: where groups are, and how far they are behind."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.completion import group_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show_outcomes
from ottla.cli.groups.lag import PartitionLag, lags
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.watch_view import EVERY_S, Interval, Watch, forever, show_repeatedly
from ottla.client.admin.sync import Admin

GROUPS = ("group", "type", "state", "assignor", "coordinator", "members", "lag")
PARTITIONS = ("group", "topic", "partition", "committed", "end", "lag", "member", "client", "host")


def describe(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GROUP", help="Name the groups; default: all.", autocompletion=group_names
        ),
    ] = None,
    *,
    watch: Watch = False,
    interval: Interval = EVERY_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show groups: state, members, and the lag of each partition.

    Examples:
      ottla groups describe billing
      ottla groups describe --json
    """
    with admin_connection(bootstrap, quiet=watch) as admin:
        if watch:
            return show_repeatedly(
                lambda: tables(admin, names)[0], as_json=as_json, every_s=interval, wait=forever()
            )
        found, failed = tables(admin, names)
    return show_outcomes(*found, failed=failed, as_json=as_json)


def tables(admin: Admin, names: list[str] | None) -> tuple[list[Table], dict[str, Exception]]:
    """Groups and their partitions, and the groups that could not be described."""
    outcomes = admin.describe_groups(names or [one.id for one in admin.list_groups()])
    behind = {group: lags(admin, group) for group in outcomes.succeeded.values()}
    groups = [
        (
            group.id,
            group.type,
            group.state,
            group.assignor,
            group.coordinator,
            len(group.members),
            sum(row.lag or 0 for row in rows),
        )
        for group, rows in behind.items()
    ]
    partitions = [_row(group.id, row) for group, rows in behind.items() for row in rows]
    found = [
        Table("groups", GROUPS, groups, ("coordinator", "type", "assignor")),
        Table("partitions", PARTITIONS, partitions, ("host", "client", "member")),
    ]
    return found, outcomes.failed


def _row(group: str, row: PartitionLag) -> tuple[object, ...]:
    topic, index = row.partition or (None, None)
    member = row.member
    who = (None, None, None) if member is None else (member.id, member.client_id, member.host)
    return (group, topic, index, row.committed, row.end, row.lag, *who)
