"""Queries are started, watched and stopped, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Event
from typing import Any

import pytest

from ottla.spark.pipelines.progress import Ends, QueryProgress
from ottla.spark.pipelines.queries import QueryOutput
from ottla.spark.pipelines.restarts import RestartPolicy
from ottla.spark.pipelines.running_queries import (
    END_OFFSETS_EVERY_MS,
    FINISH_MS,
    QueryFailed,
    Run,
    history_path,
)
from tests.fakes.manual_time import ManualClock


class Query:
    """One of Spark's, as far as a run knows: it has done some batches, and ends."""

    def __init__(
        self,
        *reports: dict[str, Any],
        failure: Exception | None = None,
        busy_looks: int = 0,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self.recentProgress = reports
        self.isActive = False
        self.stopped = False
        self.busy_looks = busy_looks
        self._failure = failure
        self._on_start = on_start

    @property
    def status(self) -> dict[str, Any]:
        """In the middle of a batch, for so many looks."""
        self.busy_looks -= 1
        return {"message": "Processing new data", "isTriggerActive": self.busy_looks > 0}

    def start(self) -> Query:
        self._on_start()
        return self

    def exception(self) -> Exception | None:
        return self._failure

    def stop(self) -> None:
        self.stopped = True


def report(batch: int, rows: int = 5, offset: int = 10) -> dict[str, Any]:
    return {
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 10},
        "sources": [{"endOffset": f'{{"t": {{"0": {offset}}}}}'}],
    }


def ends() -> Ends:
    return {"t-0": 12}


def run(queries: dict[str, Query]) -> tuple[Run, list[QueryProgress]]:
    batches: list[QueryProgress] = []
    outputs = [QueryOutput(name, query) for name, query in queries.items()]  # type: ignore[arg-type]
    return Run(outputs, ends, ManualClock(), [batches.append]), batches


def test_every_batch_is_told_once_with_its_lag() -> None:
    running, batches = run(
        {"a": Query(report(0), report(1, rows=0), report(2, offset=12)), "b": Query()}
    )
    running.until(Event())
    assert [(one.query, one.batch, one.lag_records) for one in batches] == [
        ("a", 0, 2),
        ("a", 2, 0),
    ]
    assert running.totals["a"].rows_in == 10
    assert running.totals["b"].batches == 0


def test_a_query_that_fails_stops_the_others_and_says_why() -> None:
    fault = ValueError(
        "it broke\n  pyspark.errors.X: x\n  ValueError: topic: expected a name\n at y"
    )
    queries = {"good": Query(), "bad": Query(failure=fault)}
    running, _ = run(queries)
    with pytest.raises(QueryFailed, match="bad: ValueError: topic: expected a name"):
        running.until(Event())
    assert all(query.stopped for query in queries.values())


class SlowQuery(Query):
    """One whose Python did not start in time, a few times."""

    def __init__(self, failures: int) -> None:
        super().__init__(report(0))
        self.failures = failures + 1

    def start(self) -> Query:
        self.failures -= 1
        return self

    def exception(self) -> Exception | None:
        late = "SocketTimeoutException: Timed out while waiting for the worker to connect back"
        return ValueError(late) if self.failures else None


def test_a_query_whose_python_is_slow_to_start_is_started_again() -> None:
    running, batches = run({"a": SlowQuery(3)})
    running.until(Event())
    assert len(batches) == 1
    running, _ = run({"a": SlowQuery(99)})
    with pytest.raises(QueryFailed, match="a Python worker did not start within 10 s"):
        running.until(Event())


class PassingTime(Event):
    """Told to stop after so many seconds; waiting for it takes no time."""

    def __init__(self, clock: ManualClock, limit_s: int) -> None:
        super().__init__()
        self._clock = clock
        self._until_ms = clock.mono_ms() + limit_s * 1_000

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.ns += int((timeout or 0) * 1e9)
        if self._clock.mono_ms() >= self._until_ms:
            self.set()
        return self.is_set()


class FailingQuery(Query):
    """One that fails a little after each start, in one way after another, and then runs on."""

    def __init__(self, clock: ManualClock, *failures: str) -> None:
        super().__init__()
        self.isActive = True
        self._clock = clock
        self._left = list(failures)
        self._fails: str | None = None
        self.starts_ms: list[int] = []

    def start(self) -> Query:
        self.starts_ms.append(self._clock.mono_ms())
        self._fails = self._left.pop(0) if self._left else None
        return self

    def exception(self) -> Exception | None:
        has_opened = self._clock.mono_ms() > self.starts_ms[-1] + 300
        return ValueError(self._fails) if has_opened and self._fails else None


GONE = "…\nTimeoutError: timed out after 60000 ms; last error: no metadata"


def run_failing(*failures: str, attempts: int = 10) -> FailingQuery:
    clock = ManualClock()
    query = FailingQuery(clock, *failures)
    outputs = [QueryOutput("a", query)]  # type: ignore[arg-type]
    restarts = RestartPolicy(attempts, backoff_ms=1_000, backoff_max_ms=3_000)
    Run(outputs, dict, clock, [], restarts=restarts).until(PassingTime(clock, 60))
    return query


def test_a_query_without_a_broker_is_started_again_after_growing_pauses() -> None:
    starts = run_failing(GONE, GONE, GONE, GONE).starts_ms
    pauses = [later - earlier for earlier, later in pairwise(starts)]
    assert pauses == [1_500, 2_500, 3_500, 3_500]  # noticed after half a second


def test_after_too_many_failures_in_a_row_the_pipeline_ends_and_says_so() -> None:
    with pytest.raises(QueryFailed, match=r"a: TimeoutError: .*no metadata \(after 2 restarts\)"):
        run_failing(*[GONE] * 5, attempts=2)


def test_a_mistake_is_not_tried_again() -> None:
    with pytest.raises(QueryFailed, match=r"a: ottla\.UserError: topic: expected a name$"):
        run_failing("…\nottla.UserError: topic: expected a name")


def test_a_query_that_cannot_open_its_sources_fails_at_once() -> None:
    query = Query(failure=ConnectionError("ConnectionError: no broker at b:9092"))
    running, _ = run({"a": query})
    with pytest.raises(QueryFailed, match=r"no broker at b:9092$"):
        running.until(Event())


def test_told_to_stop_it_stops_the_queries() -> None:
    stop = Event()
    query = Query(on_start=stop.set)
    query.isActive = True
    running, _ = run({"a": query})
    running.until(stop)
    assert query.stopped


def test_a_query_is_stopped_between_two_batches() -> None:
    stop = Event()
    query = Query(busy_looks=5, on_start=stop.set)
    query.isActive = True
    running, _ = run({"a": query})
    running.until(stop)
    assert query.stopped
    assert query.busy_looks <= 0


def test_a_history_is_kept_where_checkpoints_are_on_this_machine() -> None:
    assert str(history_path("/tmp/x")) == "/tmp/x/progress.jsonl"
    assert str(history_path("file:///tmp/x")) == "/tmp/x/progress.jsonl"
    assert history_path("s3://bucket/x") is None


class BusyQuery(Query):
    """One that never comes to the gap between two batches; each look takes a tenth of a second."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.isActive = True
        self._clock = clock

    @property
    def status(self) -> dict[str, Any]:
        self._clock.ns += 100_000_000
        return {"message": "Processing new data", "isTriggerActive": True}


def test_all_queries_together_have_one_time_to_come_to_a_gap() -> None:
    """With a time for each, a run of five queries took most of a minute to end."""
    clock, stop = ManualClock(), Event()
    queries = [BusyQuery(clock) for _ in range(5)]
    looks = iter(range(1_000))
    began_ms: list[int] = []

    def stopping() -> Ends:
        if next(looks) == 1:  # they all run by now
            began_ms.append(clock.mono_ms())
            stop.set()
        clock.ns += END_OFFSETS_EVERY_MS * 1_000_000
        return {}

    outputs = [QueryOutput(f"q{at}", query) for at, query in enumerate(queries)]  # type: ignore[arg-type]
    Run(outputs, stopping, clock, []).until(stop)
    assert all(query.stopped for query in queries)
    assert clock.mono_ms() - began_ms[0] <= FINISH_MS + 5 * END_OFFSETS_EVERY_MS, (
        "not once for each"
    )


def test_told_to_stop_while_queries_start_it_starts_no_more_of_them() -> None:
    stop = Event()

    started: list[str] = []

    def first() -> None:
        started.append("a")
        stop.set()

    running, _ = run({"a": Query(on_start=first), "b": Query(on_start=lambda: started.append("b"))})
    running.until(stop)
    assert started == ["a"]


class OpeningQuery(Query):
    """One that opens its sources for a few looks, and has then done a batch."""

    def __init__(self, name: str, events: list[str], looks: int) -> None:
        super().__init__(report(0), on_start=lambda: events.append(f"start {name}"))
        self.isActive = True
        self._name, self._events, self._looks = name, events, looks

    @property
    def status(self) -> dict[str, Any]:
        self._looks -= 1
        if self._looks == 0:
            self._events.append(f"open {self._name}")
        message = "Initializing sources" if self._looks > 0 else "Waiting for data"
        return {"message": message, "isTriggerActive": False}


def test_a_few_queries_open_their_sources_at_once_the_others_wait() -> None:
    events: list[str] = []
    stop = Event()
    queries = {name: OpeningQuery(name, events, 3) for name in "abc"}
    outputs = [QueryOutput(name, query) for name, query in queries.items()]  # type: ignore[arg-type]
    batches: list[str] = []

    def on_batch(progress: QueryProgress) -> None:
        batches.append(progress.query)
        if len(batches) == len(queries):
            stop.set()

    Run(outputs, ends, ManualClock(), [on_batch], opened_at_once=2).until(stop)
    assert events[:2] == ["start a", "start b"]
    assert events.index("start c") > min(events.index("open a"), events.index("open b"))
    assert sorted(batches) == ["a", "b", "c"]


def test_batches_are_reported_while_other_queries_open_their_sources() -> None:
    clock, events = ManualClock(), list[str]()
    queries = {"quick": OpeningQuery("quick", events, 1), "slow": OpeningQuery("slow", events, 99)}

    class Ticking(Event):
        def wait(self, timeout: float | None = None) -> bool:
            clock.ns += int((timeout or 0) * 1e9)
            return self.is_set()

    stop = Ticking()
    outputs = [QueryOutput(name, query) for name, query in queries.items()]  # type: ignore[arg-type]
    reported: list[str] = []

    def on_batch(progress: QueryProgress) -> None:
        reported.append(f"{progress.query}, slow is open: {'open slow' in events}")
        stop.set()

    Run(outputs, ends, clock, [on_batch], opened_at_once=2).until(stop)
    assert reported[0] == "quick, slow is open: False"
