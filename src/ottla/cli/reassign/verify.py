"""`ottla reassign verify`: which moves of a plan are done."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.reassign.moves import current, read

COLUMNS = ("topic", "partition", "state", "wanted", "now")


def verify(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Name the file that was executed.")],
    *,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Show which moves of a plan are done; exit code 1 while one is not.

    Examples:
      ottla reassign verify plan.json
    """
    moves = read(plan)
    with admin_connection(bootstrap) as admin:
        outcomes = admin.describe_topics(dict.fromkeys(one.topic for one in moves))
        moving = admin.list_partition_reassignments(moves)
    now = current(outcomes.succeeded.values())
    rows = []
    for one, wanted in moves.items():
        done = now.get(one) == wanted
        state = "moving" if one in moving else "done" if done else "elsewhere"
        rows.append((one.topic, one.partition, state, wanted, now.get(one)))
    show(Table("moves", COLUMNS, rows), as_json=as_json)
    return failures(outcomes.failed) or int(any(row[2] != "done" for row in rows))
