"""`ottla configs describe`, `set`, `delete`: settings of topics, brokers, groups and loggers."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.configs.resource import KindArgument, NameOption, known_settings, resource
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, pairs
from ottla.cli.setting_names import suggesting
from ottla.client.admin import ConfigEntry
from ottla.model.errors import KafkaError


def delete(
    kind: KindArgument,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Name the settings.")],
    *,
    name: NameOption = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Reset settings to their defaults.

    Examples:
      ottla configs delete topic retention.ms --name orders
    """
    target = resource(kind, name)
    with admin_connection(bootstrap) as admin:
        admin.incremental_alter_configs({target: dict.fromkeys(keys)}).all()
    print(f"deleted {', '.join(keys)}")
    return 0


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


def set_(
    kind: KindArgument,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="Set these.")],
    *,
    name: NameOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check whether the broker accepts it; change nothing.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Set settings; the others keep their values.

    Examples:
      ottla configs set topic retention.ms=86400000 cleanup.policy=delete --name orders
      ottla configs set group consumer.session.timeout.ms=60000 --name billing
      ottla configs set brokers message.max.bytes=1048588 --dry-run
    """
    target = resource(kind, name)
    changes = dict[str, str | None](pairs("KEY=VALUE", settings))
    with admin_connection(bootstrap) as admin:
        try:
            admin.incremental_alter_configs({target: changes}, validate_only=dry_run).all()
        except KafkaError as error:
            raise suggesting(error, changes, known_settings(kind)) from None
    print("accepted; nothing was changed" if dry_run else f"set {', '.join(changes)}")
    return 0
