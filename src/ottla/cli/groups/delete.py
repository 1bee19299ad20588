"""`ottla groups delete`: forget groups and their offsets."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import topic_partitions
from ottla.cli.completion import group_names, topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import failures
from ottla.cli.offsets.list import expanded
from ottla.cli.options import DEFAULT_SERVER, Bootstrap


def delete(
    names: Annotated[
        list[str],
        typer.Argument(metavar="GROUP", help="Name the groups.", autocompletion=group_names),
    ],
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:PARTITION,...]",
            help="Delete only the offsets of this topic.",
            autocompletion=topic_names,
        ),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Delete groups without members, or their offsets for some topics.

    Examples:
      ottla groups delete old-billing
      ottla groups delete billing --topic clicks
    """
    chosen = [topic_partitions("--topic", text) for text in topic or ()]
    with admin_connection(bootstrap) as admin:
        if not chosen:
            outcomes = admin.delete_groups(names)
            for name in outcomes.succeeded:
                print(f"deleted {name}")
            return failures(outcomes.failed)
        partitions = expanded(admin, chosen)
        failed: dict[str, Exception] = {}
        for name in names:
            told = admin.delete_group_offsets(name, partitions)
            failed |= {f"{name}: {one}": error for one, error in told.failed.items()}
            print(f"deleted {len(told.succeeded)} offsets of {name}")
    return failures(failed)
