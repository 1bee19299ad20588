"""What people and programs see while a pipeline runs.

Owns: the live table, the lines and the JSON. Never: knows where the numbers come from.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from types import TracebackType
from typing import Any, Final, Self

from ottla.spark.pipelines.progress import QueryProgress, QueryTotal

COLUMNS: Final = ("query", "batch", "rows", "rows/s", "batch ms", "lag", "lag s", "state rows")


class Lines:
    """A line for each batch: for a log, or a screen that is none."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.stdout.flush()

    def heard(self, moment: QueryProgress) -> None:
        print(moment.line(), flush=True)

    def summary(self, totals: Iterable[QueryTotal]) -> None:
        for total in totals:
            print(total.line())


class JsonLines(Lines):
    """An object for each batch, and one for each query at the end."""

    def heard(self, moment: QueryProgress) -> None:
        print(moment.json(), flush=True)

    def summary(self, totals: Iterable[QueryTotal]) -> None:
        for total in totals:
            print(json.dumps({"total": asdict(total)}, separators=(",", ":")))


class LiveTable(Lines):
    """A table that is drawn again with each batch: the last of every query."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._moments: dict[str, QueryProgress] = {}
        self._live = Live(console=Console(), auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def heard(self, moment: QueryProgress) -> None:
        self._moments[moment.query] = moment
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(*COLUMNS)
        for one in self._moments.values():
            lag = "-" if one.lag_records is None else f"{one.lag_records:,}"
            behind = "-" if one.lag_s is None else f"{one.lag_s:.0f}"
            table.add_row(
                one.query, str(one.batch), f"{one.rows_in:,}", f"{one.rows_in_s:,.0f}",
                f"{one.batch_ms:,}", lag, behind, f"{one.state_rows:,}",
            )  # fmt: skip
        return table


def display(as_json: bool) -> Lines:
    """What suits whoever is at the other end of standard output."""
    if as_json:
        return JsonLines()
    return LiveTable() if sys.stdout.isatty() else Lines()
