"""`ottla doctor`: what is wrong with a cluster, and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.cluster.show import COLUMNS, row_of
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.diagnosis.checks import ALL, Severity, examine, group_findings
from ottla.cli.diagnosis.facts import Facts, everything
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, pairs
from ottla.model.errors import UserError

CLIENTS = ("broker", "client", "version", "connections", "speaks")


def doctor(
    *,
    metrics: Annotated[
        list[str] | None,
        typer.Option(metavar="ID=HOST:PORT", help="Override where a broker's metrics are."),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Diagnose a cluster: what is wrong, what may go wrong, what to do.

    Shows what each connected client negotiated, what is under-replicated or misconfigured, and
    transactions that hold readers back. The exit code is 1 when something does not work now.

    Examples:
      ottla doctor
      ottla doctor --json
    """
    addresses = _addresses(metrics)
    with admin_connection(bootstrap) as admin:
        facts = everything(admin, addresses)
    findings = examine(facts, ALL)
    rows = [row_of(finding) for finding in (findings if as_json else group_findings(findings))]
    show(
        Table("clients", CLIENTS, _clients(facts)),
        Table("findings", COLUMNS, rows),
        as_json=as_json,
    )
    return 1 if any(one.severity is Severity.BAD for one in findings) else 0


def _addresses(given: list[str] | None) -> dict[int, str]:
    addresses = {}
    for id, address in pairs("--metrics", given).items():
        if not id.isascii() or not id.isdigit() or ":" not in address:
            raise UserError(f"--metrics {id}={address}: expected ID=HOST:PORT, such as 0=db1:9404")
        addresses[int(id)] = address
    return addresses


def _clients(facts: Facts) -> list[tuple[object, ...]]:
    return [
        (
            broker,
            client.software,
            client.version,
            client.connections,
            [f"{api} {version}" for api, version in client.speaks],
        )
        for broker, clients in facts.clients.items()
        for client in clients
    ]
