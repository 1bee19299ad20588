"""`ottla quotas remove`: remove quotas of one entity."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.quotas.options import ClientId, Ip, User, entity_of


def remove(
    quotas: Annotated[
        list[str] | None,
        typer.Argument(metavar="[QUOTA...]", help="Name the quotas; default: all."),
    ] = None,
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Remove quotas of one user, client id, both together, or IP address.

    Examples:
      ottla quotas remove producer_byte_rate --user alice
      ottla quotas remove --client-id "<default>"
    """
    entity = entity_of(user, client_id, ip)
    with admin_connection(bootstrap) as admin:
        stored = admin.describe_client_quotas().get(entity, {})
        names = sorted(quotas or stored)
        if names:
            admin.alter_client_quotas({entity: dict.fromkeys(names)}).all()
    print(f"removed {', '.join(names)}" if names else "there are no such quotas")
    return 0
