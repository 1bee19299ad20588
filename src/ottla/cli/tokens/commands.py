"""`ottla tokens create`, `list`, `renew`, `expire`: tokens to log in with for a limited time."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.profile.cluster import client_config
from ottla.client.admin.tokens import DelegationToken
from ottla.config.client import AdminConfig
from ottla.config.listeners import WITH_LOGIN
from ottla.model.errors import UserError
from ottla.security.sasl.scram import HASHES

COLUMNS: Final = ("id", "owner", "requester", "renewers", "issued", "expires", "ends at the latest")
REACHING: Final = (
    "bootstrap.servers",
    "security.protocol",
    "ssl.truststore.",
    "ssl.endpoint.identification.algorithm",
)
"""What of this command's settings its token's clients need, too: nothing of its own login."""
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"

PeriodMs = Annotated[
    int,
    typer.Option("--period-ms", metavar="MS", help="Expire after this long; -1 is the default."),
]
HmacFile = Annotated[
    Path,
    typer.Option(
        "--hmac-file", metavar="FILE", help="Read the token's HMAC from this file; - is stdin."
    ),
]
"""Never the HMAC itself: other users of the machine could read a command's arguments."""


def create(
    *,
    owner: Annotated[
        str | None, typer.Option(metavar="PRINCIPAL", help="Create it for another, as User:alice.")
    ] = None,
    renewer: Annotated[
        list[str] | None,
        typer.Option(metavar="PRINCIPAL", help="Allow this principal to renew it; repeatable."),
    ] = None,
    max_lifetime_ms: Annotated[
        int, typer.Option(metavar="MS", help="Limit its lifetime; -1 is the broker's limit.")
    ] = -1,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a client file; default: a JAAS line to stdout."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Create a token, and write the sasl.jaas.config of clients that use it.

    Examples:
      ottla tokens create --output job.properties
      ottla tokens create --renewer User:scheduler --max-lifetime-ms 86400000
    """
    with admin_connection(bootstrap) as admin:
        token = admin.create_delegation_token(
            owner=owner, renewers=renewer or (), max_lifetime_ms=max_lifetime_ms
        )
    line = (
        f'sasl.jaas.config={MODULE} required username="{token.id}" password="{token.hmac}" '
        'tokenauth="true";\n'
    )
    if output is None:
        sys.stdout.write(line)
        return 0
    _write_private(output, client_file(client_config(bootstrap, AdminConfig), line))
    print(f"created token {token.id} of {token.owner}, expires {_time(token.expires_ms)}")
    return 0


def client_file(config: Mapping[str, str], line: str) -> str:
    """The settings of a client that logs in with the token where this command has logged in."""
    mechanism = config.get("sasl.mechanism", "")
    texts = {"sasl.mechanism": mechanism if mechanism in HASHES else next(iter(HASHES))}
    if config.get("security.protocol") in WITH_LOGIN:
        texts |= {name: text for name, text in config.items() if name.startswith(REACHING)}
    store = texts.get("ssl.truststore.location")
    if store:
        texts["ssl.truststore.location"] = str(Path(store).resolve())
    lines = (f"{name}={text}".replace("\\", "\\\\") for name, text in texts.items())
    escaped = (text.replace("\n", "\\n") + "\n" for text in lines)
    return "".join(escaped) + line


def list_(
    *,
    owner: Annotated[
        list[str] | None,
        typer.Option(metavar="PRINCIPAL", help="Show only tokens of this principal; repeatable."),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List the tokens that you may see, without their HMACs.

    Examples:
      ottla tokens list
      ottla tokens list --owner User:alice --json
    """
    with admin_connection(bootstrap) as admin:
        tokens = admin.describe_delegation_tokens(owner or None)
    show(Table("tokens", COLUMNS, list(map(_row, tokens))), as_json=as_json)
    return 0


def renew(
    *, hmac_file: HmacFile, period_ms: PeriodMs = -1, bootstrap: Bootstrap = DEFAULT_SERVER
) -> int:
    """Renew a token, but not after the latest time it was created with.

    Examples:
      ottla tokens renew --hmac-file token.hmac
    """
    with admin_connection(bootstrap) as admin:
        expires_ms = admin.renew_delegation_token(_hmac(hmac_file), period_ms)
    print(f"expires {_time(expires_ms)}")
    return 0


def expire(
    *, hmac_file: HmacFile, period_ms: PeriodMs = -1, bootstrap: Bootstrap = DEFAULT_SERVER
) -> int:
    """Expire a token at once, or after a period.

    Examples:
      ottla tokens expire --hmac-file token.hmac
    """
    with admin_connection(bootstrap) as admin:
        expires_ms = admin.expire_delegation_token(_hmac(hmac_file), period_ms)
    print(f"expires {_time(expires_ms)}")
    return 0


def _row(token: DelegationToken) -> tuple[str, ...]:
    times = map(_time, (token.issued_ms, token.expires_ms, token.max_ms))
    return (token.id, token.owner, token.requester, ",".join(token.renewers), *times)


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def _hmac(file: Path) -> str:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"--hmac-file {file}: {error.strerror}") from None
    return text.strip()


def _write_private(file: Path, text: str) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            os.fchmod(descriptor, 0o600)
            out.write(text)
    except OSError as error:
        raise UserError(f"--output {file}: {error.strerror}") from None
