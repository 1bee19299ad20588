"""`ottla pipeline plan`: what a run would read, from where, and how much."""

from __future__ import annotations

from ottla.cli.console import Table, patience, show
from ottla.cli.options import AsJson
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets, masked_output
from ottla.model.clock import SystemClock
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.trial.read_plan import file_sizes, query_plans, source_range
from ottla.spark.pipelines.yaml_file import open_pipeline


def plan(
    path: PipelineFile, *, sets: Sets = None, profile: Profile = None, as_json: AsJson = False
) -> int:
    """Show what a run would read, from where, and how much.

    Examples:
      ottla pipeline plan views.yaml
      ottla pipeline plan views.yaml --json
    """
    pipeline = open_pipeline(path, sets or (), profile)
    with masked_output(pipeline.secrets):
        _show_plan(pipeline, as_json)
    return 0


def _show_plan(pipeline: Pipeline, as_json: bool) -> None:
    with patience("asking for offsets"):
        clock = SystemClock()
        ranges = {source.name: source_range(source, clock) for source in pipeline.sources}
    sources = [
        (
            source.name,
            source.options["kafka.bootstrap.servers"],
            sorted({tp.topic for tp in ranges[source.name].end}),
            len(ranges[source.name].end),
            *ranges[source.name].left(None),
        )
        for source in pipeline.sources
    ]
    plans = query_plans(pipeline, ranges)
    queries = [
        (
            each.query,
            list(each.sinks),
            list(each.sources),
            "new" if each.batch is None else f"after batch {each.batch}",
            each.records,
            each.bytes,
        )
        for each in plans
    ]
    changes = [(each.query, each.change) for each in plans if each.change is not None]
    files = [
        (source.name, source.path, *(file_sizes(source.path) or (None, None)))
        for source in pipeline.files
    ]
    tables = [Table("files", ("source", "path", "files", "bytes"), files)] if files else []
    if changes:
        tables.append(Table("state", ("query", "what the changed file means"), changes))
    show(
        *tables,
        Table(
            "sources", ("source", "bootstrap", "topics", "partitions", "records", "bytes"), sources
        ),
        Table(
            "queries", ("query", "sinks", "sources", "begins", "records to read", "bytes"), queries
        ),
        as_json=as_json,
    )
