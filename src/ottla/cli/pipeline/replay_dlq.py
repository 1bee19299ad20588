"""`ottla pipeline replay-dlq`: dead letters back to where they came from."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, patience, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap


def replay_dlq(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name the dead-letter topic.")],
    *,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Replay only letters with exactly this reason.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="TOPIC", help="Send to this topic, not to where they came from."
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Send dead letters back, each once; a later replay sends the new ones.

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
        print(f"{done.left} records skipped: another reason, or not dead letters")
    return 0
