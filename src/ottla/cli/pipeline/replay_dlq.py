"""`ottla pipeline replay-dlq`: dead letters back to where they came from."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, patience, show
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap
from ottla.cli.profile.cluster import client_config
from ottla.config.client import ClientConfig
from ottla.spark.pipelines.dlq.replay import Replayed, Selection, replay


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
    again: Annotated[
        bool, typer.Option("--again", help="Send letters that were replayed before, too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be sent; send nothing.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Send dead letters back, each once; a later replay sends the rest.

    Examples:
      ottla pipeline replay-dlq page-views-dead --dry-run
      ottla pipeline replay-dlq page-views-dead
      ottla pipeline replay-dlq page-views-dead --reason "no page" --to page-views-again
    """
    with admin_connection(bootstrap) as admin:
        admin.describe_topic(topic)
    with patience(f"replaying {topic}, offsets read:") as show_done:
        outcome = replay(
            client_config(bootstrap, ClientConfig),
            topic,
            Selection(reason, to, again),
            dry_run=dry_run,
            on_progress=lambda done, _: show_done(done),
        )
    rows = [(target, why, count) for (target, why), count in sorted(outcome.sent.items())]
    name = "would be replayed" if dry_run else "replayed"
    show(Table(name, ("topic", "reason", "records"), rows), as_json=as_json)
    if not as_json:
        for line in _not_sent(outcome):
            print(line)
    return 0


def _not_sent(outcome: Replayed) -> list[str]:
    counts = {
        "with another reason, left for a later replay": outcome.other_reason,
        "replayed before": outcome.before,
        "without an origin in their headers, skipped: send them with --to": outcome.not_letters,
    }
    return [
        f"{count:,} record{'' if count == 1 else 's'} {story}"
        for story, count in counts.items()
        if count
    ]
