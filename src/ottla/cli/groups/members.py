"""`ottla groups members`: who is in a group; putting members out."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, GroupArgument
from ottla.model.errors import UserError

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
                one
                for one in described.members
                if remove_all or one.id in (remove or ()) or one.instance_id in (remove or ())
            ]
            known = {name for one in leaving for name in (one.id, one.instance_id)}
            unknown = [name for name in remove or () if name not in known]
            if unknown:
                raise UserError(f"--remove {unknown[0]!r}: {group} has no such member")
            told = admin.remove_group_members(group, leaving)
            print(f"removed {len(told.succeeded)} of {len(described.members)}")
            return failures(told.failed)
    rows = [
        (one.id, one.instance_id, one.client_id, one.host, [str(each) for each in one.assignment])
        for one in described.members
    ]
    show(Table(f"members of {group}", COLUMNS, rows, ("host", "client")), as_json=as_json)
    return 0
