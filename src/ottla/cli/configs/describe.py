"""`ottla configs describe`: settings as they hold now, and where each value comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.configs.resource import KindArgument, NameOption, resource
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import ConfigEntry

COLUMNS = ("name", "value", "source", "read-only", "documentation")
SECRET = "(hidden)"


def describe(
    kind: KindArgument,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY", help="Show only these settings.")
    ] = None,
    *,
    name: NameOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show settings at their default too.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show settings: those that were changed, or all with --all.

    Examples:
      ottla configs describe topic --name orders
      ottla configs describe broker --name 0 --all
      ottla configs describe topic retention.ms --name orders --json
    """
    target = resource(kind, name)
    with admin_connection(bootstrap) as admin:
        entries = admin.describe_configs([target], names=keys or None, documentation=True).one()
    rows = [
        _row(entry)
        for entry in sorted(entries.values(), key=lambda entry: entry.name)
        if everything or keys or not entry.is_default
    ]
    title = f"{kind.value} {name}" if name else kind.value
    show(Table(title, COLUMNS, rows, ("documentation", "read-only")), as_json=as_json)
    return 0


def _row(entry: ConfigEntry) -> tuple[object, ...]:
    return (
        entry.name,
        SECRET if entry.sensitive else entry.value,
        entry.source.name.removesuffix("_CONFIG").lower().replace("_", " "),
        entry.read_only,
        entry.documentation,
    )
