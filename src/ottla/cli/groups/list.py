"""`ottla groups list`: consumer groups and their states."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.watch_view import EVERY_S, Interval, Watch, forever, watched
from ottla.client.admin.sync import Admin


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
            return watched(
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
