"""`ottla topics delete`: topics with all their records."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connect import connected
from ottla.cli.console import failures
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.model.errors import ErrorCode, KafkaError


def delete(
    names: Annotated[list[str], typer.Argument(metavar="TOPIC", help="Topics to delete.")],
    *,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Let a topic that does not exist be.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Delete topics with all their records. There is no way back.

    Examples:
      ottla topics delete old-orders
      ottla topics delete old-clicks older-clicks --if-exists
    """
    with connected(bootstrap) as admin:
        outcomes = admin.delete_topics(names)
    for name in outcomes.succeeded:
        print(f"deleted {name}")
    return failures(
        {
            name: error
            for name, error in outcomes.failed.items()
            if not (if_exists and _missing(error))
        }
    )


def _missing(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.unknown_topic_or_partition
