"""`ottla reassign execute`, `verify` and `cancel`: start the moves of a plan, and wait for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, failures, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.reassign import progress
from ottla.cli.reassign.moves import current, read


def execute(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="Read the plan from this JSON file.")
    ],
    *,
    wait: Annotated[
        float,
        typer.Option("--wait", min=0, metavar="SECONDS", help="Wait this long for the moves."),
    ] = 0.0,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Start the moves of a plan; `reassign verify` shows their progress.

    Examples:
      ottla reassign execute plan.json
      ottla reassign execute plan.json --wait 600
    """
    moves = read(plan)
    with admin_connection(bootstrap) as admin:
        outcomes = admin.alter_partition_reassignments({**moves})
        begun = outcomes.succeeded
        to_copy = progress.to_copy(progress.left(admin, begun))
        print(f"begun: {len(begun)} of {len(outcomes)}{to_copy}", flush=True)
        remaining = progress.wait(admin, begun, wait)
    if wait and remaining.partitions:
        print(f"{remaining.partitions} partitions still move; see ottla reassign verify")
    elif wait:
        print(f"moved: {len(begun)} of {len(outcomes)}")
    return failures(outcomes.failed) or int(bool(wait and remaining.partitions))


def cancel(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Name the file that was executed.")],
    *,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Cancel the moves of a plan that are not done yet.

    Their replicas stay where they were; what was copied is deleted.

    Examples:
      ottla reassign cancel plan.json
    """
    moves = read(plan)
    with admin_connection(bootstrap) as admin:
        outcomes = admin.alter_partition_reassignments(dict.fromkeys(moves))
    print(f"cancelled: {len(outcomes.succeeded)} of {len(outcomes)}", flush=True)
    return failures(outcomes.failed)


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
        outcomes = admin.describe_topics(dict.fromkeys(tp.topic for tp in moves))
        moving = admin.list_partition_reassignments(moves)
        remaining = progress.left(admin, moving) if moving else None
    now = current(outcomes.succeeded.values())
    rows = []
    for tp, replicas in moves.items():
        done = now.get(tp) == replicas
        state = "moving" if tp in moving else "done" if done else "elsewhere"
        rows.append((tp.topic, tp.partition, state, replicas, now.get(tp)))
    show(Table("moves", COLUMNS, rows), as_json=as_json)
    if remaining is not None:
        text = f"{remaining.partitions} partitions still move{progress.to_copy(remaining)}"
        print(text, file=sys.stderr)
    return failures(outcomes.failed) or int(any(row[2] != "done" for row in rows))
