"""`ottla pipeline backfill`: a part of the topics once more, beside the queries that run."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.console import Table, patience, show
from ottla.cli.options import AsJson
from ottla.cli.pipeline.options import (
    Archive,
    PipelineFile,
    Profile,
    Sets,
    masked_output,
    with_archive,
)
from ottla.cli.pipeline.run import run_pipeline
from ottla.spark.pipelines.backfill import Backfill, bound, describe, part_of, settle
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.yaml_file import open_pipeline


def backfill(  # noqa: PLR0913 - options of a command
    path: PipelineFile,
    *,
    begin: Annotated[
        str,
        typer.Option("--from", metavar="WHERE", help="Start at a time, earliest, or offsets."),
    ],
    end: Annotated[
        str, typer.Option("--to", metavar="WHERE", help="Stop before a time, latest, or offsets.")
    ] = "latest",
    sinks: Annotated[
        list[str] | None,
        typer.Option("--sink", metavar="NAME", help="Write to this sink only; repeatable."),
    ] = None,
    id: Annotated[
        str, typer.Option("--id", metavar="ID", help="Name it; default: by --from, --to, --sink.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be read; write nothing.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Use this Spark, as in spark://host:7077."),
    ] = None,
    archive: Archive = None,
    sets: Sets = None,
    profile: Profile = None,
    as_json: AsJson = False,
) -> int:
    """Read a part of the topics once more, into the same sinks.

    The same command again goes on where it was stopped, and writes nothing twice.

    Examples:
      ottla pipeline backfill views.yaml --from 2026-05-01T00:00:00Z --to 2026-05-02T00:00:00Z
      ottla pipeline backfill views.yaml --from earliest --sink clean --dry-run
      ottla pipeline backfill views.yaml --from '{"views": {"0": 23}}' --id second
    """
    pipeline = with_archive(open_pipeline(path, sets or (), profile), archive)
    asked = Backfill(begin, end, tuple(sinks or ()), id)
    with masked_output(pipeline.secrets):
        return _backfill(pipeline, asked, dry_run, master, as_json)


def _backfill(
    pipeline: Pipeline, backfill: Backfill, dry_run: bool, master: str | None, as_json: bool
) -> int:
    part = part_of(pipeline, backfill)
    with patience("asking for offsets"):
        ranges = settle(part, backfill, keep=not dry_run)
    records = sum(each.records for each in ranges.values())
    if dry_run:
        columns = ("source", "partition", "from", "to", "records")
        title = f"backfill {backfill.name}: {records:,} records"
        show(Table("backfill" if as_json else title, columns, describe(ranges)), as_json=as_json)
        return 0
    if not as_json:
        names = ", ".join(sink.name for sink in part.sinks)
        print(f"backfill {backfill.name}: {records:,} records to {names}", flush=True)
    return run_pipeline(bound(part, ranges), master, as_json)
