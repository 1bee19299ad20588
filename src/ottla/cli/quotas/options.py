"""The options that name an entity with quotas, and how quotas are shown."""

from __future__ import annotations

from typing import Annotated, Final

import typer

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
