"""`ottla quotas set`, `list`, `remove`: how much clients may use."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin.quotas import QuotaFilter
from ottla.client.errors import UserError
from ottla.security.quotas.entities import DEFAULT, Name, QuotaEntity

DEFAULT_NAME: Final = "<default>"
User = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Name a user; <default> means all others."),
]
ClientId = Annotated[
    str | None,
    typer.Option("--client-id", metavar="NAME", help="Name a client id, or <default>."),
]
Ip = Annotated[
    str | None, typer.Option("--ip", metavar="ADDRESS", help="Name an IP address, or <default>.")
]


def entity_of(user: str | None, client_id: str | None, ip: str | None) -> QuotaEntity:
    if user is None and client_id is None and ip is None:
        raise UserError("name an entity: --user, --client-id, both, or --ip")
    return QuotaEntity(name_of(user), name_of(client_id), name_of(ip))


def name_of(text: str | None) -> Name | None:
    return DEFAULT if text == DEFAULT_NAME else text


def name_text(name: Name | None) -> str | None:
    return DEFAULT_NAME if name is DEFAULT else name


def list_(
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List quotas: all, or those of a user, a client id or an IP address.

    Examples:
      ottla quotas list
      ottla quotas list --user alice --json
    """
    named = {"user": user, "client-id": client_id, "ip": ip}
    filter: QuotaFilter = {
        kind: name for kind, text in named.items() if (name := name_of(text)) is not None
    }
    with admin_connection(bootstrap) as admin:
        quotas = admin.describe_client_quotas(filter)
    rows = [
        (*map(name_text, entity), key, value)
        for entity, values in quotas.items()
        for key, value in sorted(values.items())
    ]
    rows.sort(key=str)
    show(Table("quotas", ("user", "client id", "ip", "quota", "value"), rows), as_json=as_json)
    return 0


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
