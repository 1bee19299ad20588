"""`ottla configs set`: give settings a value."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.configs.resource import KindArgument, NameOption, known_settings, resource
from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap, pairs
from ottla.cli.setting_names import suggesting
from ottla.model.errors import KafkaError


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
