"""Output of `ottla pipeline run`: a live table, lines of text or lines of JSON.

Owns: how progress is printed. Never: computes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ottla.spark.pipelines.progress import QueryProgress, QueryTotal

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS: Final = ("query", "batch", "rows", "rows/s", "batch ms", "lag", "lag s", "state rows")


class Lines:
    """A line for each batch: for logs and pipes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.stdout.flush()

    def on_batch(self, progress: QueryProgress) -> None:
        print(progress.line(), flush=True)

    def summary(self, totals: Iterable[QueryTotal]) -> None:
        for total in totals:
            print(total.line())


class JsonLines(Lines):
    """An object for each batch, and one for each query at the end."""

    def on_batch(self, progress: QueryProgress) -> None:
        print(progress.json(), flush=True)

    def summary(self, totals: Iterable[QueryTotal]) -> None:
        for total in totals:
            print(json.dumps({"total": asdict(total)}, separators=(",", ":")))


class LiveTable(Lines):
    """A table of the latest batch of every query, redrawn with each batch; at the end it stays on
    the screen, or makes room."""

    def __init__(self, *, is_kept: bool = True) -> None:
        from rich.console import Console
        from rich.live import Live

        self._latest: dict[str, QueryProgress] = {}
        self._live = Live(console=Console(), auto_refresh=False, transient=not is_kept)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()  # started by the first batch: errors before it are plain lines

    def on_batch(self, progress: QueryProgress) -> None:
        self._latest[progress.query] = progress
        self._live.start()
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0))  # frames leave too little of 80 columns
        for name in COLUMNS:
            table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
        for latest in self._latest.values():
            lag = "-" if latest.lag_records is None else f"{latest.lag_records:,}"
            lag_s = "-" if latest.lag_s is None else f"{latest.lag_s:.0f}"
            table.add_row(
                latest.query, str(latest.batch), f"{latest.rows_in:,}", f"{latest.rows_in_s:,.0f}",
                f"{latest.batch_ms:,}", lag, lag_s, f"{latest.state_rows:,}",
            )  # fmt: skip
        return table


def display(as_json: bool) -> Lines:
    """The form that suits standard output: a terminal, a pipe or a program."""
    if as_json:
        return JsonLines()
    return LiveTable() if sys.stdout.isatty() else Lines()
