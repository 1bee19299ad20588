"""`ottla transactions list` and `describe`: transactions and their partitions."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import duration_ms, shown_time
from ottla.cli.completion import transactional_ids
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show, show_outcomes
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import Transaction

LISTED = ("transactional id", "state", "producer id", "coordinator")
DESCRIBED = (
    "transactional id",
    "state",
    "producer id",
    "epoch",
    "timeout ms",
    "started",
    "coordinator",
    "partitions",
)
DESCRIBED_LEAST = ("timeout ms", "coordinator", "epoch")


def list_(
    *,
    state: Annotated[
        list[str] | None, typer.Option(help="Show those in this state: Ongoing, ...; repeatable.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="Match the whole id with this regular expression (RE2).")
    ] = None,
    longer_than: Annotated[
        str | None, typer.Option(metavar="5m", help="Show only those open for longer.")
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """List transactional ids.

    Examples:
      ottla transactions list
      ottla transactions list --state Ongoing --longer-than 5m --json
    """
    longer_than_ms = -1 if longer_than is None else duration_ms("--longer-than", longer_than)
    with admin_connection(bootstrap) as admin:
        transactions = admin.list_transactions(
            states=state or (), pattern=pattern, longer_than_ms=longer_than_ms
        )
    rows = [(txn.id, txn.state, txn.producer_id, txn.coordinator) for txn in transactions]
    show(Table("transactions", LISTED, rows, ("coordinator",)), as_json=as_json)
    return 0


def describe(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="TRANSACTIONAL_ID",
            help="Name the transactional ids.",
            autocompletion=transactional_ids,
        ),
    ],
    *,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show the state of transactions and their partitions.

    Examples:
      ottla transactions describe payments
    """
    with admin_connection(bootstrap) as admin:
        outcomes = admin.describe_transactions(ids)
    rows = [_row(transaction) for transaction in outcomes.succeeded.values()]
    found = Table("transactions", DESCRIBED, rows, DESCRIBED_LEAST)
    return show_outcomes(found, failed=outcomes.failed, as_json=as_json)


def _row(txn: Transaction) -> tuple[object, ...]:
    return (
        txn.id,
        txn.state,
        txn.producer_id,
        txn.producer_epoch,
        "never" if txn.two_phase else txn.timeout_ms,
        shown_time(txn.started_ms),
        txn.coordinator,
        [str(partition) for partition in txn.partitions],
    )
