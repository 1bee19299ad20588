"""`ottla reassign execute`: begin the moves of a plan, or call them off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import failures
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.reassign import progress
from ottla.cli.reassign.moves import read
from ottla.model.ids import TopicPartition


def execute(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="Read the plan from this JSON file.")
    ],
    *,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the moves of the plan.")] = False,
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
    wanted: dict[TopicPartition, Sequence[int] | None] = (
        dict.fromkeys(moves) if cancel else {**moves}
    )
    with admin_connection(bootstrap) as admin:
        outcomes = admin.alter_partition_reassignments(wanted)
        did = "called off" if cancel else "begun"
        print(f"{did}: {len(outcomes.succeeded)} of {len(outcomes)}", flush=True)
        remaining = progress.wait(admin, outcomes.succeeded, 0 if cancel else wait)
    if wait and remaining.partitions:
        print(f"{remaining.partitions} partitions still move; see ottla reassign verify")
    return failures(outcomes.failed) or int(bool(wait and remaining.partitions))
