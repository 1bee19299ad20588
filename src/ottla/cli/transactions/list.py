"""`ottla transactions list`: transactional ids and their states."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import duration_ms
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap

COLUMNS = ("transactional id", "state", "producer id", "coordinator")


def list_(
    *,
    state: Annotated[
        list[str] | None, typer.Option(help="Show those in this state: Ongoing, ...; repeatable.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="Match the whole id with this regular expression (RE2).")
    ] = None,
    longer_than: Annotated[
        str | None, typer.Option(metavar="5m", help="Show only those open for longer.")
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List transactional ids.

    Examples:
      ottla transactions list
      ottla transactions list --state Ongoing --longer-than 5m --json
    """
    longer_than_ms = -1 if longer_than is None else duration_ms("--longer-than", longer_than)
    with admin_connection(bootstrap) as admin:
        found = admin.list_transactions(
            states=state or (), pattern=pattern, longer_than_ms=longer_than_ms
        )
    rows = [(one.id, one.state, one.producer_id, one.coordinator) for one in found]
    show(Table("transactions", COLUMNS, rows, ("coordinator",)), as_json=as_json)
    return 0
