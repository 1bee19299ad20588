"""`ottla reassign plan`: propose where partitions should be."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import INT16_MAX, INT32_MAX, whole_number
from ottla.cli.completion import topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.options import DEFAULT_SERVER, Bootstrap
from ottla.cli.reassign.moves import as_json, current, proposed
from ottla.model.errors import UserError


def plan(
    topics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOPIC", help="Name the topics to move.", autocompletion=topic_names
        ),
    ] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Move all topics, internal ones too.")
    ] = False,
    brokers: Annotated[
        str | None, typer.Option(metavar="ID,...", help="Move to these brokers; default: all.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            max=INT16_MAX,
            help="Set the number of replicas; default: unchanged.",
        ),
    ] = None,
    now: Annotated[
        bool, typer.Option("--current", help="Write the current assignment, to undo a move.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Propose a new assignment of partitions, for `reassign execute`.

    Examples:
      ottla reassign plan orders --current > before.json
      ottla reassign plan orders clicks --brokers 0
      ottla reassign plan --all --replication-factor 3
    """
    if every == bool(topics):
        raise UserError("expected the names of topics, or --all")
    ids = None if brokers is None else _ids(brokers)
    with admin_connection(bootstrap) as admin:
        names = admin.list_topics(internal=True) if every else topics or []
        described = list(admin.describe_topics(names).all().values())
        if ids is None:
            ids = [broker.id for broker in admin.describe_cluster().brokers]
    print(as_json(current(described) if now else proposed(described, ids, replication_factor)))
    return 0


def _ids(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() for word in words) or len(set(words)) < len(words):
        raise UserError(f"--brokers {text!r}: expected different ids of brokers, such as 0,1,2")
    return [whole_number("--brokers", word, "a broker's id", most=INT32_MAX) for word in words]
