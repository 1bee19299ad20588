"""`ottla reassign execute`: begin the moves of a plan, or call them off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import failures
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.reassign.moves import read
from ottla.model.ids import TopicPartition


def execute(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="Read the plan from this JSON file.")
    ],
    *,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the moves of the plan.")] = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Start the moves of a plan; `reassign verify` shows their progress.

    Examples:
      ottla reassign execute plan.json
    """
    moves = read(plan)
    wanted: dict[TopicPartition, Sequence[int] | None] = (
        dict.fromkeys(moves) if cancel else {**moves}
    )
    with admin_connection(bootstrap) as admin:
        outcomes = admin.alter_partition_reassignments(wanted)
    did = "called off" if cancel else "begun"
    print(f"{did}: {len(outcomes.succeeded)} of {len(outcomes)}")
    return failures(outcomes.failed)
