"""`ottla groups list`: consumer groups and their states."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connect import connected
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap


def list_(
    *,
    state: Annotated[
        list[str] | None,
        typer.Option(help="Only groups in this state: Stable, Empty, ...; repeatable."),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List consumer groups.

    Examples:
      ottla groups list
      ottla groups list --state Empty --json
    """
    with connected(bootstrap) as admin:
        groups = admin.list_groups(states=state or ())
    rows = [(one.id, one.type, one.protocol_type, one.state) for one in groups]
    show(Table("groups", ("group", "type", "protocol", "state"), rows), as_json=as_json)
    return 0
