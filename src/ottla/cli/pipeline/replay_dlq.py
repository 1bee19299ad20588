"""`ottla pipeline replay-dlq`: dead letters back to where they came from."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, patience, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap


def replay_dlq(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The dead-letter topic.")],
    *,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only letters refused for exactly this.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TOPIC", help="Instead of where they came from.")
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Send dead letters back, each once: a second replay sends what came since.

    Examples:
      ottla pipeline replay-dlq page-views-dead
      ottla pipeline replay-dlq page-views-dead --reason "no page" --to page-views-again
    """
    from ottla.spark.pipelines.replay import replay

    with admin_connection(bootstrap) as admin:
        admin.describe_topic(topic)
    with patience(f"replaying {topic}"):
        done = replay(bootstrap, topic, reason=reason, to=to)
    show(Table("replayed", ("topic", "records"), list(done.sent.items())), as_json=as_json)
    if done.left and not as_json:
        print(f"{done.left} were left: another reason, or no letters")
    return 0
