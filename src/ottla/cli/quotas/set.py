"""`ottla quotas set`: set quotas of one entity."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.quotas.options import ClientId, Ip, User, entity_of
from ottla.client.errors import UserError


def set_(
    quotas: Annotated[
        list[str],
        typer.Argument(
            metavar="QUOTA=VALUE...", help="Set these, such as producer_byte_rate=1024."
        ),
    ],
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Set quotas; they are in force at once.

    producer_byte_rate and consumer_byte_rate are bytes a second, request_percentage is a share of
    one event loop, controller_mutation_rate counts partitions created and deleted a second,
    connection_creation_rate (of an IP address) connections a second; each on every broker.

    Examples:
      ottla quotas set producer_byte_rate=1048576 --user alice
      ottla quotas set request_percentage=50 --client-id "<default>"
      ottla quotas set connection_creation_rate=10 --ip 10.0.0.7
    """
    entity = entity_of(user, client_id, ip)
    values = dict(_pair(text) for text in quotas)
    with admin_connection(bootstrap) as admin:
        admin.alter_client_quotas({entity: values}).all()
    print(f"set {', '.join(quotas)}")
    return 0


def _pair(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        raise UserError(f"{text!r}: expected QUOTA=NUMBER") from None
