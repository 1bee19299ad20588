"""`ottla pipeline validate`: what is wrong with a file, before it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.console import patience
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets, masked_output
from ottla.spark.pipelines.preflight import findings
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.yaml_file import open_pipeline


def validate(
    path: PipelineFile,
    *,
    sets: Sets = None,
    profile: Profile = None,
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Check keys and options only, without Spark.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Check the file and its SQL, but ask no broker.")
    ] = False,
) -> int:
    """Check a pipeline file: keys, SQL, topics, paths and checkpoints.

    Examples:
      ottla pipeline validate views.yaml
      ottla pipeline validate views.yaml --offline
      ottla pipeline validate views.yaml --words-only
    """
    pipeline = open_pipeline(path, sets or (), profile)
    with masked_output(pipeline.secrets):
        return _validate(path, pipeline, words_only, offline)


def _validate(path: Path, pipeline: Pipeline, words_only: bool, offline: bool) -> int:
    if not words_only:
        _analyse(pipeline)
        with patience("checking topics and paths"):
            found = findings(pipeline, offline=offline)
        for finding in found:
            print(f"ottla: {path}: {finding}", file=sys.stderr)
        if found:
            return 1
    views = [view.name for view in (*pipeline.sources, *pipeline.files, *pipeline.steps)]
    sinks = ", ".join(f"{sink.name} (from {sink.source})" for sink in pipeline.sinks)
    print(f"{path}: valid. Views: {', '.join(views)}. Sinks: {sinks}.")
    return 0


def _analyse(pipeline: Pipeline) -> None:
    """Have Spark analyse the SQL; UserError for what it rejects."""
    from ottla.spark.pipelines.queries import outputs
    from ottla.spark.pipelines.session import session
    from ottla.spark.pipelines.views import Views

    with patience("checking the SQL with Spark"):
        spark = session(pipeline.name, "local[1]", pipeline.spark)
        try:
            list(outputs(pipeline, Views(spark, pipeline)))
        finally:
            spark.stop()
