"""Progress of queries: one batch, totals, and lag. Pure.

Owns: how Spark's report of a batch becomes a `QueryProgress`, and the definition of lag: records
in the topics that were not read, and how long ago the query's position was the end of them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from ottla.model.clock import WallMs
from ottla.spark.offsets import from_json

SNAPSHOTS: Final = 600
"""Snapshots of end offsets that are kept, to tell how old a position is."""

ProgressReport: TypeAlias = Mapping[str, Any]
"""What Spark reports of a batch, from its JSON."""
Ends: TypeAlias = Mapping[str, int]
"""End offsets of partitions, or positions of a query, by `topic-partition`."""


@dataclass(frozen=True)
class QueryProgress:
    """One batch of one query."""

    query: str
    at_ms: WallMs
    batch: int
    rows_in: int
    rows_in_s: float
    rows_out: int
    batch_ms: int
    state_rows: int
    lag_records: int | None = None
    lag_s: float | None = None
    late_rows: int = 0
    """Rows that were dropped because they came later than the watermark allows."""

    def with_lag(self, records: int, seconds: float) -> QueryProgress:
        return replace(self, lag_records=records, lag_s=seconds)

    def line(self) -> str:
        """One line of text."""
        lag = "" if self.lag_records is None else f"  lag {self.lag_records:,} records"
        if self.lag_s is not None and self.lag_records:
            lag += f", {self.lag_s:.0f} s"
        state = f"  state {self.state_rows:,} rows" if self.state_rows else ""
        late = f"  {self.late_rows:,} late rows dropped" if self.late_rows else ""
        return (
            f"{self.query}: batch {self.batch}  {self.rows_in:,} rows, {self.rows_in_s:,.0f}/s"
            f"  {self.batch_ms:,} ms{lag}{state}{late}"
        )

    def json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


class ProgressTracker:
    """End offsets of topics over time, and so the lag of a query at a position.

    Records written before the first snapshot count from its time, as theirs is not known.
    """

    def __init__(self) -> None:
        self._snapshots: deque[tuple[int, Ends]] = deque(maxlen=SNAPSHOTS)

    def add_ends(self, ends: Ends, now_ms: WallMs) -> None:
        self._snapshots.append((now_ms, ends))

    def lag(self, position: Ends, now_ms: WallMs) -> tuple[int, float]:
        """Records not read, and seconds since the query's position was the end of its topics."""
        ends = self._snapshots[-1][1] if self._snapshots else {}
        read = sum(min(offset, ends[tp]) for tp, offset in position.items() if tp in ends)
        records = _sum(ends, position) - read
        if records <= 0:
            return 0, 0.0
        return records, max(0.0, now_ms - self._time_of(position, read)) / 1000

    def _time_of(self, position: Ends, read: int) -> float:
        """When the ends passed what has been read; interpolated between two snapshots."""
        before: tuple[int, int] | None = None
        for at_ms, ends in self._snapshots:
            end = _sum(ends, position)
            if end > read:
                if before is None:
                    return at_ms
                share = (read - before[1]) / (end - before[1])
                return before[0] + share * (at_ms - before[0])
            before = (at_ms, end)
        return self._snapshots[-1][0]


def _sum(ends: Ends, among: Ends) -> int:
    return sum(offset for tp, offset in ends.items() if tp in among)


@dataclass
class QueryTotal:
    """Everything a query has done in a run."""

    query: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    busy_ms: int = 0
    late_rows: int = 0

    def add(self, progress: QueryProgress) -> None:
        self.batches += 1
        self.rows_in += progress.rows_in
        self.rows_out += max(progress.rows_out, 0)
        self.busy_ms += progress.batch_ms
        self.late_rows += progress.late_rows

    def line(self) -> str:
        seconds = self.busy_ms / 1000
        rate = f", {self.rows_in / seconds:,.0f} rows/s" if seconds else ""
        out = f", {self.rows_out:,} out" if self.rows_out else ""
        late = f", {self.late_rows:,} late rows dropped" if self.late_rows else ""
        batches = f"{self.batches:,} batch{'' if self.batches == 1 else 'es'} in {seconds:,.1f} s"
        return f"{self.query}: {self.rows_in:,} rows in{out}, {batches}{rate}{late}"


def query_progress(query: str, report: ProgressReport, at_ms: WallMs) -> QueryProgress:
    """Spark's report of one batch."""
    rows = int(report.get("numInputRows") or 0)
    busy_ms = int((report.get("durationMs") or {}).get("triggerExecution") or 0)
    operators: Sequence[ProgressReport] = report.get("stateOperators") or ()
    return QueryProgress(
        query,
        at_ms,
        int(report["batchId"]),
        rows,
        rows * 1000 / busy_ms if busy_ms else 0.0,
        int((report.get("sink") or {}).get("numOutputRows") or 0),
        busy_ms,
        sum(int(operator.get("numRowsTotal") or 0) for operator in operators),
        late_rows=sum(int(each.get("numRowsDroppedByWatermark") or 0) for each in operators),
    )


def positions(report: ProgressReport) -> dict[str, int]:
    """The query's position in the partitions it reads, after a batch."""
    offsets_by_partition: dict[str, int] = {}
    for source in report.get("sources") or ():
        offsets = source.get("endOffset")
        if isinstance(offsets, str):
            offsets = json.loads(offsets)
        if not all(isinstance(value, dict | str) for value in (offsets or {}).values()):
            continue  # files have an offset of another form
        parsed = from_json(offsets or {})
        offsets_by_partition |= {str(tp): offset for tp, offset in parsed.items()}
    return offsets_by_partition
