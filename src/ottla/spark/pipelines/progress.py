"""What queries have done: numbers of a moment, a line for a person, a summary. Pure.

Owns: how Spark's report of a batch becomes a `QueryProgress`, and the definition of lag: records
in the topics that were not read, and how long ago the query's position was their end.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from ottla.spark.offsets import from_json

REMEMBERED: Final = 600
"""Looks at the ends of topics that are kept, to tell how old a position is."""

Ends: TypeAlias = Mapping[str, int]
"""Where partitions end, or a query stands: by `topic-partition`."""


@dataclass(frozen=True)
class QueryProgress:
    """One batch of one query."""

    query: str
    at_ms: int
    batch: int
    rows_in: int
    rows_in_s: float
    rows_out: int
    batch_ms: int
    state_rows: int
    lag_records: int | None = None
    lag_s: float | None = None

    def behind(self, records: int, seconds: float) -> QueryProgress:
        return replace(self, lag_records=records, lag_s=seconds)

    def line(self) -> str:
        """For a person."""
        lag = "" if self.lag_records is None else f"  lag {self.lag_records:,} records"
        if self.lag_s is not None and self.lag_records:
            lag += f", {self.lag_s:.0f} s"
        state = f"  state {self.state_rows:,} rows" if self.state_rows else ""
        return (
            f"{self.query}: batch {self.batch}  {self.rows_in:,} rows, {self.rows_in_s:,.0f}/s"
            f"  {self.batch_ms:,} ms{lag}{state}"
        )

    def json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


class ProgressTracker:
    """Where topics ended at each look, and so how far behind a query is that stands somewhere.

    What was written before the first look is as old as that: nobody knows better.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[int, Ends]] = deque(maxlen=REMEMBERED)

    def saw(self, ends: Ends, now_ms: int) -> None:
        self._seen.append((now_ms, ends))

    def behind(self, position: Ends, now_ms: int) -> tuple[int, float]:
        """Records not read, and seconds since the ends were where the query stands."""
        known = self._seen[-1][1] if self._seen else {}
        read = sum(min(offset, known[tp]) for tp, offset in position.items() if tp in known)
        records = _sum(known, position) - read
        if records <= 0:
            return 0, 0.0
        return records, max(0.0, now_ms - self._when(position, read)) / 1000

    def _when(self, position: Ends, read: int) -> float:
        """When the ends passed what has been read, between two looks if need be."""
        before: tuple[int, int] | None = None
        for at_ms, ends in self._seen:
            end = _sum(ends, position)
            if end > read:
                if before is None:
                    return at_ms
                share = (read - before[1]) / (end - before[1])
                return before[0] + share * (at_ms - before[0])
            before = (at_ms, end)
        return self._seen[-1][0]


def _sum(ends: Ends, among: Ends) -> int:
    return sum(offset for tp, offset in ends.items() if tp in among)


@dataclass
class QueryTotal:
    """All that a query has done in a run."""

    query: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    busy_ms: int = 0

    def add(self, moment: QueryProgress) -> None:
        self.batches += 1
        self.rows_in += moment.rows_in
        self.rows_out += max(moment.rows_out, 0)
        self.busy_ms += moment.batch_ms

    def line(self) -> str:
        seconds = self.busy_ms / 1000
        rate = f", {self.rows_in / seconds:,.0f} rows/s" if seconds else ""
        out = f", {self.rows_out:,} out" if self.rows_out else ""
        return (
            f"{self.query}: {self.rows_in:,} rows in{out}, "
            f"{self.batches:,} batches in {seconds:,.1f} s{rate}"
        )


def moment(query: str, progress: Mapping[str, Any], at_ms: int) -> QueryProgress:
    """Spark's report of one batch."""
    rows = int(progress.get("numInputRows") or 0)
    busy_ms = int((progress.get("durationMs") or {}).get("triggerExecution") or 0)
    operators: Iterable[Mapping[str, Any]] = progress.get("stateOperators") or ()
    return QueryProgress(
        query,
        at_ms,
        int(progress["batchId"]),
        rows,
        rows * 1000 / busy_ms if busy_ms else 0.0,
        int((progress.get("sink") or {}).get("numOutputRows") or 0),
        busy_ms,
        sum(int(one.get("numRowsTotal") or 0) for one in operators),
    )


def positions(progress: Mapping[str, Any]) -> dict[str, int]:
    """Where the query stands in the topics it reads, after a batch."""
    found: dict[str, int] = {}
    for source in progress.get("sources") or ():
        offsets = source.get("endOffset")
        if isinstance(offsets, str):
            offsets = json.loads(offsets)
        found |= {str(tp): at for tp, at in from_json(offsets or {}).items()}
    return found
