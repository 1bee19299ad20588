"""Running a pipeline, as a function.

Owns: one run from the file to the totals: the Spark session if the caller has none, the topic end
offsets for the lag, the queries, and a bound on how long stopping may take.
Never: prints, handles signals, or exits; callers and their listeners do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, Final

from ottla.model.clock import SystemClock
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.checkpoint_owner import claim
from ottla.spark.pipelines.file_sources import TableRefresh
from ottla.spark.pipelines.file_values import masked_errors
from ottla.spark.pipelines.group_sync import GroupSyncing
from ottla.spark.pipelines.lineage.run_events import run_events
from ottla.spark.pipelines.progress import QueryTotal
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.running_queries import History, Listener, QueryFailed, Run
from ottla.spark.pipelines.session import activate, session, stop_session
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.topic_ends import TopicEnds
from ottla.spark.pipelines.variables import Masks, mask
from ottla.spark.pipelines.views import Views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_S: Final = 4.0
"""How long queries may take to end once the run is told to stop."""
POLL_S: Final = 0.1
STOP_TIMEOUT: Final = (
    "stopped before every query had ended; the next run goes on from its checkpoints"
)


class StopTimeout(Exception):
    """The run was told to stop, and a query had not ended in time."""

    def __init__(self) -> None:
        super().__init__(STOP_TIMEOUT)


def run(  # noqa: PLR0913 - options of one call, all but the first by keyword
    pipeline: Pipeline | Path | str,
    *,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    once: bool = False,
    checkpoint: str | None = None,
    seconds: float | None = None,
    stop: Event | None = None,
    listeners: Sequence[Listener] = (),
    master: str | None = None,
    spark: SparkSession | None = None,
) -> Mapping[str, QueryTotal]:
    """Run the queries of a pipeline and return what each of them has done, by name.

        from ottla.spark import pipelines

        totals = pipelines.run("views.yaml", once=True, listeners=[print])
        print(totals["clean"].rows_in)

    `pipeline` is the path of a YAML file or a parsed `Pipeline`. `overrides` are settings put over
    the file's, such as "bootstrap=broker:9092", and `profile` names one of its profiles; they need
    a file. `checkpoint` replaces the file's.

    The call returns when every query has ended (`once`, or `trigger: once` in the file: what is in
    the topics now is read), `seconds` after the first query started, or when `stop` is set, by
    another thread or a signal handler. A later run with the same checkpoint goes on from there.

    Each listener is called with the `QueryProgress` of every batch; every batch is also a line of
    `progress.jsonl` beside the checkpoints. Without `spark` a session is started, at `master`
    (default: this machine), and stopped at the end; a session that is handed in is left running.

    A query that fails because a broker or a worker is unavailable is started again, as the file's
    `restart` says. Raises `UserError` for a mistake in the file or where Java is missing,
    `QueryFailed` when a query fails otherwise (the others are stopped), and `StopTimeout` when
    queries did not stop in 4 seconds.
    """
    parsed = _parse(pipeline, overrides, profile)
    trigger = "once" if once else parsed.trigger
    parsed = replace(parsed, trigger=trigger, checkpoint=checkpoint or parsed.checkpoint)
    claim(parsed.checkpoint, parsed.name)
    active = spark or _session(parsed, master)
    try:
        with _masked_failures(parsed.secrets):
            return _run_on(active, parsed, stop or Event(), seconds, listeners)
    finally:
        if spark is None:
            stop_session(active)


def _session(pipeline: Pipeline, master: str | None) -> SparkSession:
    return session(
        pipeline.name, master, pipeline.spark, pipeline.checkpoint, secrets=pipeline.secrets
    )


@contextmanager
def _masked_failures(secrets: Sequence[str]) -> Iterator[None]:
    """No failure of a query and no mistake in the file shows a secret."""
    try:
        with masked_errors(Masks(tuple(secrets))):
            yield
    except QueryFailed as failure:
        raise QueryFailed(mask(str(failure), secrets)) from None


def _parse(
    pipeline: Pipeline | Path | str, overrides: Sequence[str], profile: str | None
) -> Pipeline:
    if isinstance(pipeline, Pipeline):
        if overrides or profile:
            raise ValueError("overrides need the path of a pipeline file, not a parsed Pipeline")
        return pipeline
    return yaml_file.open_pipeline(Path(pipeline), overrides, profile)


def _run_on(
    spark: SparkSession,
    pipeline: Pipeline,
    stop: Event,
    seconds: float | None,
    listeners: Sequence[Listener],
) -> Mapping[str, QueryTotal]:
    clock = SystemClock()
    views = Views(spark, pipeline)
    queries = list(outputs(pipeline, views))
    sync = pipeline.group_sync
    syncs = [] if sync is None else [GroupSyncing(sync, clock)]
    history = History(pipeline.checkpoint)
    with (
        run_events(pipeline, views.frames, clock) as on_batch,
        TopicEnds(pipeline.sources, clock) as ends,
    ):
        running = Run(
            queries,
            ends,
            clock,
            [*listeners, history.on_batch, *on_batch],
            [*syncs, TableRefresh(spark, pipeline.files, views.frames, clock, views.table_use)],
            restarts=pipeline.restart,
        )

        def run_queries() -> None:
            activate(spark)
            running.until(stop)

        timer = None if seconds is None else Timer(seconds, stop.set)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            finished = run_bounded(run_queries, stop)
        finally:
            if timer is not None:
                timer.cancel()
    if not finished:
        raise StopTimeout
    for group_sync in syncs:
        group_sync.now()  # for what the last batches have copied
    return running.totals


def run_bounded(work: Callable[[], object], stop: Event, limit_s: float = STOP_S) -> bool:
    """Call `work` on a thread; after `stop` is set wait at most `limit_s` for it to return.

    A call into Spark, the start of a query above all, cannot be interrupted; such a call is left
    behind on its daemon thread, and False is returned.
    """
    outcome: Future[None] = Future()

    def call() -> None:
        try:
            work()
            outcome.set_result(None)
        except BaseException as failure:
            outcome.set_exception(failure)

    Thread(target=call, daemon=True).start()
    try:
        while not stop.wait(POLL_S) and not outcome.done():
            pass
    except BaseException:  # Ctrl-C where no handler is installed: let the queries end first
        stop.set()
        futures.wait([outcome], limit_s)
        raise
    try:
        outcome.result(limit_s)
    except TimeoutError:
        return False
    return True
