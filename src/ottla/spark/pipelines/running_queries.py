"""The streaming queries of one run: started, watched and stopped.

Owns: the queries from the first start to the last stop, and the history of their batches.
Never: prints; callers pass listeners that are called for each batch.

A query whose failure may pass by itself is started again (`restarts`). Any other failure stops all
queries: what they have committed stays, and the next run goes on from their checkpoints.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlparse

from ottla.model.clock import Clock, MonoMs
from ottla.spark.pipelines.progress import (
    Ends,
    ProgressReport,
    ProgressTracker,
    QueryProgress,
    QueryTotal,
    positions,
    query_progress,
)
from ottla.spark.pipelines.queries import QueryOutput
from ottla.spark.pipelines.restarts import WORKER_TIMEOUT, RestartPolicy, is_passing, reason

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

POLL_S: Final = 0.5
START_POLL_S: Final = 0.05
START_ATTEMPTS: Final = 5
OPENED_AT_ONCE: Final = os.cpu_count() or 1
"""Queries that may open their sources at the same time. Spark starts a Python process for each
source and gives it ten seconds: a small machine may need longer for many at once."""
END_OFFSETS_EVERY_MS: Final = 1_000
FINISH_MS: Final = 1_500
"""How long all queries together may take to finish their current batch when a run ends."""
FINISH_POLL_S: Final = 0.01
STOP_MS: Final = 1_500
"""How long queries may take to stop in the middle of a batch; Spark itself has no limit."""
HISTORY: Final = "progress.jsonl"

NO_RESTARTS: Final = RestartPolicy(attempts=0)

FindEnds: TypeAlias = Callable[[], Ends]
"""Returns the current end offsets of the partitions that are read."""
Listener: TypeAlias = Callable[[QueryProgress], object]
"""Called with the progress of every batch."""


class QueryFailed(Exception):
    """A query ended with an error; the message names the query and the cause."""


class OpeningQuery:
    """A query that was started, until it has opened its sources or has failed.

    One whose Python worker did not start in time is started again: nothing was read.
    """

    def __init__(self, output: QueryOutput, queries: dict[str, StreamingQuery]) -> None:
        """`queries`: where it is put as soon as it runs."""
        self._output = output
        self._queries = queries
        self._attempts = START_ATTEMPTS
        self._attempt()

    def is_opening(self) -> bool:
        query = self._queries[self._output.name]
        if query.isActive and _is_starting(query):
            return True
        if self._attempts and WORKER_TIMEOUT in str(query.exception()):
            self._attempt()
            return True
        return False

    def _attempt(self) -> None:
        self._attempts -= 1
        self._queries[self._output.name] = self._output.start()


class Run:
    """The queries of one pipeline, while they run."""

    def __init__(
        self,
        outputs: Sequence[QueryOutput],
        ends: FindEnds,
        clock: Clock,
        listeners: Sequence[Listener],
        background_tasks: Sequence[Callable[[], None]] = (),
        *,
        restarts: RestartPolicy = RestartPolicy(),  # noqa: B008 - immutable
        opened_at_once: int = OPENED_AT_ONCE,
    ) -> None:
        self._outputs = outputs
        self._ends = ends
        self._clock = clock
        self._listeners = listeners
        self._background_tasks = background_tasks
        self._tracker = ProgressTracker()
        self._ends_updated_ms: MonoMs | None = None
        self._last_batch: dict[str, int] = {}
        self._restarts = restarts
        self._opened_at_once = opened_at_once
        self._opened: set[str] = set()
        self._failures: dict[str, int] = {}
        self._restart_at_ms: dict[str, MonoMs] = {}
        self.totals = {output.name: QueryTotal(output.name) for output in outputs}

    def until(self, stop: Event) -> None:
        """Run until every query has ended or `stop` is set; QueryFailed if a query fails."""
        queries: dict[str, StreamingQuery] = {}
        try:
            self._update_ends()
            self._start_all(queries, stop)
            while not stop.wait(POLL_S) and self._poll(queries):
                self._restart(queries, stop)
                for task in self._background_tasks:
                    task()
        finally:
            self._stop(queries.values())
        self._restarts = NO_RESTARTS
        self._poll(queries)

    def _start_all(self, queries: dict[str, StreamingQuery], stop: Event) -> None:
        """Start the queries, a few at a time, reporting the batches of those that run already."""
        waiting = deque(self._outputs)
        opening: dict[str, OpeningQuery] = {}
        polled_ms = self._clock.mono_ms()
        while (waiting or opening) and not stop.is_set():
            if waiting and len(opening) < self._opened_at_once:
                output = waiting.popleft()
                opening[output.name] = OpeningQuery(output, queries)
            else:
                stop.wait(START_POLL_S)
            for name in [name for name, one in opening.items() if not one.is_opening()]:
                del opening[name]
                self._note_opened(name, queries[name])
            if self._clock.mono_ms() - polled_ms >= POLL_S * 1_000:
                polled_ms = self._clock.mono_ms()
                self._poll({name: queries[name] for name in queries if name not in opening})

    def _start(self, queries: dict[str, StreamingQuery], output: QueryOutput, stop: Event) -> None:
        one = OpeningQuery(output, queries)
        while one.is_opening() and not stop.wait(START_POLL_S):
            pass
        self._note_opened(output.name, queries[output.name])

    def _note_opened(self, name: str, query: StreamingQuery) -> None:
        if query.exception() is None:
            self._opened.add(name)

    def _poll(self, queries: Mapping[str, StreamingQuery]) -> bool:
        """Report new batches to the listeners; whether any query still runs or will."""
        self._update_ends()
        for name, query in queries.items():
            for report in query.recentProgress:
                self._on_report(name, _as_mapping(report))
            failure = query.exception()
            if failure is not None and name not in self._restart_at_ms:
                self._on_failure(name, failure)
        return bool(self._restart_at_ms) or any(query.isActive for query in queries.values())

    def _on_failure(self, name: str, failure: Exception) -> None:
        """Plan a restart, or raise.

        A query that has not opened its sources in this run is not started again: an address or a
        topic may be wrong, which shall be said at once.
        """
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        delay_ms = self._restarts.delay_ms(failures)
        if delay_ms is None or name not in self._opened or not is_passing(failure):
            tried = f" (after {failures - 1} restarts)" if failures > 1 else ""
            raise QueryFailed(f"{name}: {reason(failure)}{tried}")
        log.warning(
            "query %s failed, restart %d of %d in %.1f s: %s",
            name, failures, self._restarts.attempts, delay_ms / 1_000, reason(failure),
        )  # fmt: skip
        self._restart_at_ms[name] = MonoMs(self._clock.mono_ms() + delay_ms)

    def _restart(self, queries: dict[str, StreamingQuery], stop: Event) -> None:
        """Start the failed queries again whose time has come."""
        for output in self._outputs:
            at_ms = self._restart_at_ms.get(output.name)
            if at_ms is not None and self._clock.mono_ms() >= at_ms:
                del self._restart_at_ms[output.name]
                self._start(queries, output, stop)

    def _stop(self, queries: Iterable[StreamingQuery]) -> None:
        """Stop queries between two batches, as far as they finish their batch soon enough.

        Tasks and Python workers that are interrupted log long stack traces, and the next run has to
        repeat their work. The time limit is for all queries together: a service manager that sent
        SIGTERM does not wait longer because there are more queries.
        """
        wait = Event().wait
        until_ms = MonoMs(self._clock.mono_ms() + FINISH_MS)
        busy = list(queries)
        while busy and self._clock.mono_ms() < until_ms:
            idle = [query for query in busy if not _is_busy(query)]
            self._stop_all(idle)
            busy = [query for query in busy if query not in idle]
            if busy:
                wait(FINISH_POLL_S)
        self._stop_all(busy)

    def _stop_all(self, queries: Sequence[StreamingQuery]) -> None:
        """Stop them concurrently, waiting at most `STOP_MS`: stopping the session ends the rest."""
        threads = [Thread(target=_stop, args=(query,), daemon=True) for query in queries]
        for thread in threads:
            thread.start()
        until_ms = MonoMs(self._clock.mono_ms() + STOP_MS)
        for thread in threads:
            thread.join(max(until_ms - self._clock.mono_ms(), 0) / 1_000)

    def _update_ends(self) -> None:
        """Fetch the end offsets regularly, between batches too: lag in seconds needs them."""
        now_ms = self._clock.mono_ms()
        last_ms = self._ends_updated_ms
        if last_ms is None or now_ms - last_ms >= END_OFFSETS_EVERY_MS:
            self._ends_updated_ms = now_ms
            self._tracker.add_ends(self._ends(), self._clock.wall_ms())

    def _on_report(self, name: str, report: ProgressReport) -> None:
        batch = int(report["batchId"])
        if batch <= self._last_batch.get(name, -1) or not report.get("numInputRows"):
            return
        self._last_batch[name] = batch
        self._failures.pop(name, None)
        now_ms = self._clock.wall_ms()
        progress = query_progress(name, report, now_ms)
        position = positions(report)
        if position:
            progress = progress.with_lag(*self._tracker.lag(position, now_ms))
        self.totals[name].add(progress)
        for listener in self._listeners:
            listener(progress)


class History:
    """Every batch as a line of JSON, beside the checkpoints; `ottla pipeline report` reads it."""

    def __init__(self, checkpoint: str) -> None:
        self._path = history_path(checkpoint)

    def on_batch(self, progress: QueryProgress) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(progress.json() + "\n")


def history_path(checkpoint: str) -> Path | None:
    """The path of the history; None when checkpoints are not on a local disk."""
    parts = urlparse(checkpoint)
    return None if parts.scheme not in ("", "file") else Path(parts.path) / HISTORY


def _is_starting(query: StreamingQuery) -> bool:
    """Whether it has not opened its sources yet."""
    status: str = query.status["message"]
    return status.startswith(("Initializing", "Getting offsets"))


def _stop(query: StreamingQuery) -> None:
    """Stop a query; a failure is of no interest: the session ends, or has ended, and it with it."""
    with suppress(Exception):
        query.stop()


def _is_busy(query: StreamingQuery) -> bool:
    return bool(query.isActive and query.status["isTriggerActive"])


def _as_mapping(report: ProgressReport | StreamingQueryProgress) -> ProgressReport:
    """Spark returns a report as a dict, or as an object that holds one."""
    mapping: ProgressReport = report if isinstance(report, Mapping) else report.jsonValue
    return mapping
