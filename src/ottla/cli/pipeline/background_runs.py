"""`ottla pipeline status|stop|logs`: the run of a pipeline, in the background above all."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from threading import Event
from typing import Annotated, Final

import typer

from ottla.cli.console import Table, patience, show
from ottla.cli.options import AsJson
from ottla.cli.pipeline.options import PipelineFile, Profile, Sets, masked_output
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.spark.pipelines import background
from ottla.spark.pipelines.running_queries import history_path
from ottla.spark.pipelines.yaml_file import open_pipeline

STOP_MS: Final = 60_000
COLUMNS: Final = ("query", "batch", "rows_in", "rows_in_s", "lag_records", "lag_s")


def status(
    path: PipelineFile, *, sets: Sets = None, profile: Profile = None, as_json: AsJson = False
) -> int:
    """Show whether a pipeline runs, and its last batches.

    The exit code is 1 where it does not run.

    Examples:
      ottla pipeline status views.yaml
    """
    pipeline = open_pipeline(path, sets or (), profile)
    run = background.find(pipeline.checkpoint)
    state = "running" if run is not None and run.is_running else "stopped"
    since = None if run is None else datetime.fromtimestamp(run.started_ms / 1_000, UTC)
    row = (pipeline.name, state, None if run is None else run.pid, since and f"{since:%F %T}Z")
    show(
        Table("pipeline", ("pipeline", "state", "process", "started"), [row]),
        Table("queries", COLUMNS, _last_batches(pipeline.checkpoint)),
        as_json=as_json,
    )
    return 0 if state == "running" else 1


def stop(path: PipelineFile, *, sets: Sets = None, profile: Profile = None) -> int:
    """Stop a running pipeline.

    Examples:
      ottla pipeline stop views.yaml
    """
    pipeline = open_pipeline(path, sets or (), profile)
    run = background.find(pipeline.checkpoint)
    if run is None or not run.is_running:
        raise UserError(f"{pipeline.name} does not run")
    with patience(f"stopping {pipeline.name}"):
        ended = background.stop(pipeline.checkpoint, SystemClock(), Event().wait, STOP_MS)
    if not ended:
        print(
            f"ottla: process {run.pid} has not ended within {STOP_MS // 1_000} s", file=sys.stderr
        )
        return 1
    print(f"{pipeline.name} stopped (process {run.pid})")
    return 0


def logs(
    path: PipelineFile,
    *,
    lines: Annotated[int, typer.Option("--lines", min=0, help="Show so many from the end.")] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show what is printed, until the run ends.")
    ] = False,
    sets: Sets = None,
    profile: Profile = None,
) -> int:
    """Show what a pipeline in the background has printed.

    Examples:
      ottla pipeline logs views.yaml
      ottla pipeline logs views.yaml --follow
    """
    pipeline = open_pipeline(path, sets or (), profile)
    if not background.has_log(pipeline.checkpoint):
        raise UserError(f"{pipeline.name} was not started with ottla pipeline run --background")
    with masked_output(pipeline.secrets):
        for line in background.log_lines(pipeline.checkpoint, lines) if lines else ():
            print(line)
        if follow:
            for text in background.follow_log(pipeline.checkpoint, Event().wait):
                print(text, end="", flush=True)
    return 0


def _last_batches(checkpoint: str) -> list[tuple[object, ...]]:
    """The last batch of each query, by the history beside the checkpoints."""
    history = history_path(checkpoint)
    if history is None or not history.is_file():
        return []
    last: dict[str, dict[str, object]] = {}
    for line in background.tail(history).splitlines():
        try:
            fields = json.loads(line)
            last[fields["query"]] = fields
        except (ValueError, KeyError):
            continue  # a line that was cut short by a kill
    return [tuple(_rounded(fields.get(name)) for name in COLUMNS) for fields in last.values()]


def _rounded(value: object) -> object:
    return round(value, 1) if isinstance(value, float) else value
