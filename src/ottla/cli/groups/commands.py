"""`ottla groups list`, `members`, `delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import topic_partitions
from ottla.cli.completion import group_names, topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, GroupArgument
from ottla.cli.watch_view import EVERY_S, Interval, Watch, forever, show_repeatedly
from ottla.client.admin.sync import Admin
from ottla.model.errors import UserError


def delete(
    names: Annotated[
        list[str],
        typer.Argument(metavar="GROUP", help="Name the groups.", autocompletion=group_names),
    ],
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:PARTITION,...]",
            help="Delete only the offsets of this topic.",
            autocompletion=topic_names,
        ),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Delete groups without members, or their offsets for some topics.

    Examples:
      ottla groups delete old-billing
      ottla groups delete billing --topic clicks
    """
    chosen = [topic_partitions("--topic", text) for text in topic or ()]
    with admin_connection(bootstrap) as admin:
        if not chosen:
            outcomes = admin.delete_groups(names)
            for name in outcomes.succeeded:
                print(f"deleted {name}")
            return failures(outcomes.failed)
        partitions = expand_partitions(admin, chosen)
        failed: dict[str, Exception] = {}
        for name in names:
            told = admin.delete_group_offsets(name, partitions)
            failed |= {f"{name}: {one}": error for one, error in told.failed.items()}
            print(f"deleted {len(told.succeeded)} offsets of {name}")
    return failures(failed)


def list_(
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(help="Show groups in this state: Stable, Empty, ...; repeatable."),
    ] = None,
    watch: Watch = False,
    interval: Interval = EVERY_S,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List consumer groups.

    Examples:
      ottla groups list
      ottla groups list --state Empty --json
    """
    with admin_connection(bootstrap, quiet=watch) as admin:
        if watch:
            return show_repeatedly(
                lambda: [_groups(admin, state)], as_json=as_json, every_s=interval, wait=forever()
            )
        groups = _groups(admin, state)
    show(groups, as_json=as_json)
    return 0


def _groups(admin: Admin, states: list[str] | None) -> Table:
    rows = [
        (one.id, one.type, one.protocol_type, one.state)
        for one in admin.list_groups(states=states or ())
    ]
    return Table("groups", ("group", "type", "protocol", "state"), rows, ("protocol",))


COLUMNS = ("member", "instance", "client", "host", "partitions")


def members(
    group: GroupArgument,
    *,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="MEMBER", help="Remove this member or static instance; repeatable."),
    ] = None,
    remove_all: Annotated[bool, typer.Option("--remove-all", help="Remove all members.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show the members of a group and their partitions, or remove members.

    Examples:
      ottla groups members billing
      ottla groups members billing --remove-all
    """
    with admin_connection(bootstrap) as admin:
        described = admin.describe_group(group)
        if remove or remove_all:
            leaving = [
                member
                for member in described.members
                if remove_all or member.id in (remove or ()) or member.instance_id in (remove or ())
            ]
            known = {name for member in leaving for name in (member.id, member.instance_id)}
            unknown = [name for name in remove or () if name not in known]
            if unknown:
                raise UserError(f"--remove {unknown[0]!r}: {group} has no such member")
            told = admin.remove_group_members(group, leaving)
            print(f"removed {len(told.succeeded)} of {len(described.members)}")
            return failures(told.failed)
    rows = [
        (
            member.id,
            member.instance_id,
            member.client_id,
            member.host,
            [str(each) for each in member.assignment],
        )
        for member in described.members
    ]
    show(Table(f"members of {group}", COLUMNS, rows, ("host", "client")), as_json=as_json)
    return 0
