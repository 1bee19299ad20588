"""`ottla pipeline try`: a sample of real records through the steps, shown as tables."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.console import Table, patience, show
from ottla.cli.options import AsJson
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets, masked_output
from ottla.model.clock import SystemClock
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.yaml_file import open_pipeline


def try_(
    path: PipelineFile,
    *,
    records: Annotated[
        int, typer.Option("--records", min=1, max=100_000, help="Read so many of each source.")
    ] = 100,
    rows: Annotated[
        int, typer.Option("--rows", min=1, max=1_000, help="Show so many of each view.")
    ] = 10,
    sets: Sets = None,
    profile: Profile = None,
    as_json: AsJson = False,
) -> int:
    """Show the last records of the sources after each step; write nothing.

    Examples:
      ottla pipeline try views.yaml
      ottla pipeline try views.yaml --records 1000 --rows 5
    """
    pipeline = open_pipeline(path, sets or (), profile)
    with masked_output(pipeline.secrets):
        _try(pipeline, records, rows, as_json)
    return 0


def _try(pipeline: Pipeline, records: int, rows: int, as_json: bool) -> None:
    from ottla.spark.pipelines.session import session
    from ottla.spark.pipelines.trial.sample import try_pipeline

    with patience("reading a sample with Spark"):
        spark = session(f"{pipeline.name}-try", None, pipeline.spark, secrets=pipeline.secrets)
        try:
            sample = try_pipeline(spark, pipeline, SystemClock(), records=records, rows=rows)
            samples = list(sample)
        finally:
            spark.stop()
    tables = [
        Table(
            each.name if as_json else _title(each.name, len(each.rows), each.total),
            each.columns,
            each.rows,
        )
        for each in samples
    ]
    show(*tables, as_json=as_json)


def _title(name: str, rows: int, total: int) -> str:
    return name if rows == total else f"{name} ({rows} of {total:,} rows)"
