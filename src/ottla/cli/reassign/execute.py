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
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file in JSON.")],
    *,
    cancel: Annotated[bool, typer.Option("--cancel", help="Call its moves off.")] = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Begin the moves of a plan. They go on by themselves: see `reassign verify`.

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
