"""`ottla pipeline run`: run the queries of a file until they have ended or are stopped."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from ottla.cli.console import patience
from ottla.cli.options import AsJson
from ottla.cli.pipeline.display import display
from ottla.cli.pipeline.options import (
    Archive,
    PipelineFile,
    Profile,
    Sets,
    masked_output,
    with_archive,
)
from ottla.model.clock import SystemClock
from ottla.spark import pipelines
from ottla.spark.pipelines import background
from ottla.spark.pipelines.checkpoint_owner import check_owner
from ottla.spark.pipelines.java import check_java
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.yaml_file import open_pipeline


def run(  # noqa: PLR0913 - a command's options are its parameters
    path: PipelineFile,
    *,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Use this Spark, as in spark://host:7077."),
    ] = None,
    archive: Archive = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read what is in the topics now, then end.")
    ] = False,
    sets: Sets = None,
    profile: Profile = None,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", min=0, max=65535, help="Serve metrics for Prometheus."),
    ] = None,
    in_background: Annotated[
        bool, typer.Option("--background", help="Run on its own; see status, logs and stop.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run a pipeline file until Ctrl-C; a later run goes on from there.

    Examples:
      ottla pipeline run views.yaml
      ottla pipeline run views.yaml --once --json
      ottla pipeline run views.yaml --background --profile prod
      ottla pipeline run views.yaml --master spark://spark:7077 --set bootstrap=broker:9092
    """
    pipeline = with_archive(open_pipeline(path, sets or (), profile), archive)
    if in_background:
        check_owner(pipeline.checkpoint, pipeline.name)
        check_java(os.environ)  # here it is said to whoever starts the run, there to a file
        options = {"--master": master, "--profile": profile, "--metrics-port": metrics_port}
        given = [f"{name}={value}" for name, value in options.items() if value is not None]
        given += [f"--set={setting}" for setting in sets or ()]
        given += [] if archive is None else [f"--archive={archive}"]
        given += ["--once"] * once + ["--json"] * as_json
        return _start(path, pipeline, given)
    if once:
        pipeline = replace(pipeline, trigger="once")
    with masked_output(pipeline.secrets):
        return run_pipeline(pipeline, master, as_json, metrics_port)


def _start(path: Path, pipeline: Pipeline, options: Sequence[str]) -> int:
    """The same command, on its own."""
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(path), *options]
    pid = background.start(pipeline.checkpoint, command, SystemClock())
    print(f"{pipeline.name} runs in the background (process {pid})")
    print(
        f"See ottla pipeline status {path}, ottla pipeline logs {path}, ottla pipeline stop {path}"
    )
    return 0


def run_pipeline(
    pipeline: Pipeline, master: str | None, as_json: bool, metrics_port: int | None = None
) -> int:
    """Run it on a Spark session of its own, printing progress; the exit code."""
    check_owner(pipeline.checkpoint, pipeline.name)
    with background.run_lock(pipeline.checkpoint, SystemClock()):
        return _run_alone(pipeline, master, as_json, metrics_port)


def _run_alone(
    pipeline: Pipeline, master: str | None, as_json: bool, metrics_port: int | None
) -> int:
    from ottla.spark.pipelines.metrics import PipelineMetrics
    from ottla.spark.pipelines.session import log_path, session, stop_session

    metrics, output = PipelineMetrics(), display(as_json)
    if metrics_port is not None:
        print(f"metrics on port {metrics.serve(metrics_port)}", file=sys.stderr)
    with patience("starting Spark"):
        spark = session(
            pipeline.name, master, pipeline.spark, pipeline.checkpoint, secrets=pipeline.secrets
        )
    with stop_on_signals() as stop, output:
        listeners = [output.on_batch, metrics.on_batch]
        try:
            totals = pipelines.run(pipeline, spark=spark, stop=stop, listeners=listeners)
        except (pipelines.QueryFailed, pipelines.StopTimeout) as failure:
            print(f"ottla: {failure}", file=sys.stderr)
            print(f"ottla: Spark's log: {log_path(pipeline.checkpoint)}", file=sys.stderr)
            return 1
        finally:
            stop_session(spark)
    output.summary(totals.values())
    return 0


@contextmanager
def stop_on_signals() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set, until the block ends."""
    stop = Event()
    previous = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
