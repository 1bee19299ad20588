"""`ottla transactions describe`: how transactions stand."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import shown_time
from ottla.cli.completion import transactional_ids
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.client.admin import Transaction

COLUMNS = (
    "transactional id",
    "state",
    "producer id",
    "epoch",
    "timeout ms",
    "started",
    "coordinator",
    "partitions",
)

LEAST = ("timeout ms", "coordinator", "epoch")


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
    rows = [_row(one) for one in outcomes.succeeded.values()]
    show(Table("transactions", COLUMNS, rows, LEAST), as_json=as_json)
    return failures(outcomes.failed)


def _row(one: Transaction) -> tuple[object, ...]:
    return (
        one.id,
        one.state,
        one.producer_id,
        one.producer_epoch,
        "never" if one.two_phase else one.timeout_ms,
        shown_time(one.started_ms),
        one.coordinator,
        [str(each) for each in one.partitions],
    )
