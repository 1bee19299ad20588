"""`ottla configs delete`: let settings go back to their default."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.configs.resource import KindArgument, NameOption, resource
from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap


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
