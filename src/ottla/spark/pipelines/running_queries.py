"""Queries started, watched and stopped.

Owns: the queries of one run, from the first to the last. Never: draws; whoever runs a pipeline
hands in what hears of each batch.

A query that fails stops the others: what they have done is kept, and a run after the mistake is
mended goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from urllib.parse import urlparse

from ottla.model.clock import Clock
from ottla.spark.pipelines.progress import (
    Ends,
    ProgressTracker,
    QueryProgress,
    QueryTotal,
    moment,
    positions,
)
from ottla.spark.pipelines.queries import QueryOutput

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_EVERY_S: Final = 0.5
GLANCE_S: Final = 0.05
STARTS: Final = 5
TOO_SLOW: Final = "connect back"
"""What Spark says of a Python process that did not start in time."""
ASK_EVERY_MS: Final = 1_000
FINISH_MS: Final = 1_500
FINISH_LOOK_S: Final = 0.01
"""How long all queries together may take to come to the gap between two batches when a run ends."""
STOP_MS: Final = 1_500
"""How long queries may take to stop in the middle of a batch; Spark's own limit is none."""
HISTORY: Final = "progress.jsonl"

FindEnds: TypeAlias = Callable[[], Ends]
"""Where the partitions that are read end now."""


class QueryFailed(Exception):
    """A query ended by an error; the message says which and why."""


class Listener(Protocol):
    """Hears of every batch."""

    def heard(self, moment: QueryProgress) -> None: ...


class Run:
    """The queries of one pipeline, while they run."""

    def __init__(
        self,
        outputs: Sequence[QueryOutput],
        ends: FindEnds,
        clock: Clock,
        listeners: Sequence[Listener],
        chores: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._outputs = outputs
        self._ends = ends
        self._clock = clock
        self._listeners = listeners
        self._chores = chores
        self._tide = ProgressTracker()
        self._asked_ms: int | None = None
        self._heard: dict[str, int] = {}
        self.totals = {output.name: QueryTotal(output.name) for output in outputs}

    def until(self, stop: Event) -> None:
        """Run until everything there was is read, or until told to stop; QueryFailed if one did."""
        queries: dict[str, StreamingQuery] = {}
        try:
            self._watch_the_ends()
            for output in self._outputs:
                if stop.is_set():
                    break
                queries[output.name] = _started(output, stop)
            while not stop.wait(LOOK_EVERY_S) and self._look(queries):
                for chore in self._chores:
                    chore()
        finally:
            self._stop(queries.values())
        self._look(queries)

    def _look(self, queries: Mapping[str, StreamingQuery]) -> bool:
        """Tell what is new; whether any query still runs."""
        self._watch_the_ends()
        for name, query in queries.items():
            for report in query.recentProgress:
                self._hear(name, _plain(report))
            failure = query.exception()
            if failure is not None:
                raise QueryFailed(f"{name}: {_reason(failure)}")
        return any(query.isActive for query in queries.values())

    def _stop(self, queries: Iterable[StreamingQuery]) -> None:
        """End queries between two batches, those that come to a gap soon enough.

        Tasks and Python processes that are cut short tell of it at length, and the next run has to
        do their work again. The time is one for all of them: a service manager that sent SIGTERM
        does not wait for as many seconds as there are queries.
        """
        wait = Event().wait
        until_ms = self._clock.mono_ms() + FINISH_MS
        busy = list(queries)
        while busy and self._clock.mono_ms() < until_ms:
            idle = [query for query in busy if not _is_busy(query)]
            self._stop_all(idle)
            busy = [query for query in busy if query not in idle]
            if busy:
                wait(FINISH_LOOK_S)
        self._stop_all(busy)

    def _stop_all(self, queries: Sequence[StreamingQuery]) -> None:
        """At the same time, and for no longer than `STOP_MS`: the session that is stopped next ends
        what is left of them."""
        threads = [Thread(target=query.stop, daemon=True) for query in queries]
        for thread in threads:
            thread.start()
        until_ms = self._clock.mono_ms() + STOP_MS
        for thread in threads:
            thread.join(max(until_ms - self._clock.mono_ms(), 0) / 1_000)

    def _watch_the_ends(self) -> None:
        """Ask where topics end, whether a batch has ended or not: lag in seconds is told by it."""
        now_ms = self._clock.mono_ms()
        if self._asked_ms is None or now_ms - self._asked_ms >= ASK_EVERY_MS:
            self._asked_ms = now_ms
            self._tide.saw(self._ends(), self._clock.wall_ms())

    def _hear(self, name: str, report: Mapping[str, Any]) -> None:
        batch = int(report["batchId"])
        if batch <= self._heard.get(name, -1) or not report.get("numInputRows"):
            return
        self._heard[name] = batch
        now_ms = self._clock.wall_ms()
        told = moment(name, report, now_ms)
        stands = positions(report)
        if stands:
            told = told.behind(*self._tide.behind(stands, now_ms))
        self.totals[name].add(told)
        for listener in self._listeners:
            listener.heard(told)


class History:
    """Every batch as a line of JSON, beside the checkpoints: what a report is drawn from."""

    def __init__(self, checkpoint: str) -> None:
        self._path = history_path(checkpoint)

    def heard(self, moment: QueryProgress) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(moment.json() + "\n")


def history_path(checkpoint: str) -> Path | None:
    """Where the history is; None when checkpoints are not on a disk of this machine."""
    parts = urlparse(checkpoint)
    return None if parts.scheme not in ("", "file") else Path(parts.path) / HISTORY


def _started(output: QueryOutput, stop: Event) -> StreamingQuery:
    """A query that has opened its sources, or has failed.

    It opens a Python process for each of them, which Spark gives ten seconds. A small machine may
    need longer for many at once: hence one query after another, and another try where it was not
    enough. Nothing is lost by that, as nothing has been read.
    """
    for _ in range(STARTS - 1):
        query = output.start()
        while query.isActive and _begins(query) and not stop.wait(GLANCE_S):
            pass
        if TOO_SLOW not in str(query.exception()):
            return query
    return output.start()


def _begins(query: StreamingQuery) -> bool:
    """Whether it has yet to open its sources."""
    doing: str = query.status["message"]
    return doing.startswith(("Initializing", "Getting offsets"))


def _is_busy(query: StreamingQuery) -> bool:
    return bool(query.isActive and query.status["isTriggerActive"])


def _plain(report: Any) -> Mapping[str, Any]:
    """Spark gives a report as a dict, or as an object that holds one."""
    found: Mapping[str, Any] = report if isinstance(report, dict) else report.jsonValue
    return found


def _reason(failure: Exception) -> str:
    """What the user of a failed query wants to read first: what our own code said, or whatever
    began it; Spark wraps both."""
    cause: Any = failure
    while getattr(cause, "_cause", None) is not None:
        cause = cause._cause
    for text in (str(failure), str(cause)):
        told = [line.strip() for line in text.splitlines() if "Error: " in line]
        if told:
            return told[-1]
    return next((line.strip() for line in str(cause).splitlines() if line.strip()), "it failed")
