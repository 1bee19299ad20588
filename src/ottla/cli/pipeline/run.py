"""`ottla pipeline run`: run a file's queries until they are done or told to stop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ottla.cli.console import patience
from ottla.cli.options import AsJson
from ottla.cli.pipeline.display import display
from ottla.cli.pipeline.load import PipelineFile, Sets, opened
from ottla.model.clock import SystemClock
from ottla.spark.pipelines.spec import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_S: Final = 4.0
"""How long queries may take to end once the run is told to stop."""
END_S: Final = 3.0
"""How long Spark itself may take after that: together they are less than service managers allow."""
LOOK_S: Final = 0.1
UNFINISHED: Final = (
    "stopped before every query had ended; the next run goes on from its checkpoints"
)


def run(
    path: PipelineFile,
    *,
    master: Annotated[
        str | None,
        typer.Option("--master", metavar="URL", help="Spark's, such as spark://host:7077."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there now, then end.")] = False,
    sets: Sets = None,
    metrics_port: Annotated[
        int | None,
        typer.Option("--metrics-port", min=0, max=65535, help="Offer numbers for Prometheus."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Run the queries of a pipeline file. Ctrl-C stops them; a later run goes on from there.

    Examples:
      ottla pipeline run views.yaml
      ottla pipeline run views.yaml --once --json
      ottla pipeline run views.yaml --master spark://spark:7077 --set bootstrap=broker:9092
    """
    pipeline = opened(path, sets)
    return run_pipeline(
        replace(pipeline, trigger="once") if once else pipeline, master, as_json, metrics_port
    )


def run_pipeline(
    pipeline: Pipeline, master: str | None, as_json: bool, metrics_port: int | None = None
) -> int:
    """Run it here; the exit code."""
    from ottla.spark.pipelines.group_sync import GroupSyncing
    from ottla.spark.pipelines.metrics import PipelineMetrics
    from ottla.spark.pipelines.queries import outputs
    from ottla.spark.pipelines.running_queries import History, QueryFailed, Run
    from ottla.spark.pipelines.session import session
    from ottla.spark.pipelines.topic_ends import TopicEnds
    from ottla.spark.pipelines.views import Views

    clock, measures = SystemClock(), PipelineMetrics()
    if metrics_port is not None:
        print(f"metrics on port {measures.serve(metrics_port)}", file=sys.stderr)
    with patience("starting Spark"):
        spark = session(pipeline.name, master, pipeline.spark, pipeline.checkpoint)
        made = list(outputs(pipeline, Views(spark, pipeline)))
    sync = pipeline.group_sync
    syncs = [] if sync is None else [GroupSyncing(sync, clock)]
    shown = display(as_json)
    with _stopped_by_signals() as stop, TopicEnds(pipeline.sources, clock) as ends, shown:
        running = Run(made, ends, clock, [shown, measures, History(pipeline.checkpoint)], syncs)
        try:
            if not bounded(lambda: running.until(stop), stop):
                print(f"ottla: {UNFINISHED}", file=sys.stderr)
                return 1
        except QueryFailed as failure:
            print(f"ottla: {failure}", file=sys.stderr)
            return 1
        finally:
            _end(spark)
        for one in syncs:
            one.now()  # of what the last batches have copied
    shown.summary(running.totals.values())
    return 0


def bounded(work: Callable[[], None], stop: Event, limit_s: float = STOP_S) -> bool:
    """Do it on a thread, and wait for it no longer than `limit_s` once told to stop.

    A call into Spark that is under way, the start of a query above all, cannot be cut short; it is
    left behind then, and False is returned.
    """
    outcome: Future[None] = Future()

    def run() -> None:
        try:
            work()
            outcome.set_result(None)
        except BaseException as failure:
            outcome.set_exception(failure)

    Thread(target=run, daemon=True).start()
    while not stop.wait(LOOK_S) and not outcome.done():
        pass
    try:
        outcome.result(limit_s)
    except TimeoutError:
        return False
    return True


def _end(spark: SparkSession) -> None:
    """Stop Spark, and wait no longer than a service manager would: this process ends next, and the
    virtual machine with it."""
    stopping = Thread(target=spark.stop, daemon=True)
    stopping.start()
    stopping.join(END_S)


@contextmanager
def _stopped_by_signals() -> Iterator[Event]:
    """Set by Ctrl-C and SIGTERM, while the block lasts."""
    stop = Event()
    before = {
        one: signal.signal(one, lambda *_: stop.set()) for one in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
