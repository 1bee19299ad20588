"""A run as a picture: throughput and lag over time, one line a query.

Owns: what the picture shows. Reads the history that a run writes beside its checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ottla.model.errors import UserError
from ottla.spark.pipelines.progress import QueryProgress

KINDS: Final = (".png", ".svg")
SIZE_INCHES: Final = (10, 7)


def read(path: Path) -> list[QueryProgress]:
    """The batches of a history; a line that was being written when the machine stopped is left."""
    if not path.is_file():
        raise UserError(f"{path}: there is no history yet; ottla pipeline run writes it")
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(QueryProgress(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    if not found:
        raise UserError(f"{path}: no batch has ended yet")
    return found


def draw(moments: Sequence[QueryProgress], title: str, to: Path) -> None:
    """Write the picture, as the file's name says: .png or .svg."""
    if to.suffix not in KINDS:
        raise UserError(f"{to}: expected a name that ends in {' or '.join(KINDS)}")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (rates, lags) = pyplot.subplots(2, 1, sharex=True, figsize=SIZE_INCHES)
    for query, those in by_query(moments).items():
        times = [datetime.fromtimestamp(one.at_ms / 1000, UTC) for one in those]
        rates.plot(times, [one.rows_in_s for one in those], marker=".", label=query)
        behind: list[Any] = [one.lag_records for one in those]
        lags.plot(times, behind, marker=".", label=query)
    rates.set_title(title)
    rates.set_ylabel("rows/s")
    lags.set_ylabel("records behind")
    for axes in (rates, lags):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    rates.legend(loc="upper right")
    figure.autofmt_xdate()
    figure.tight_layout()
    figure.savefig(to)
    pyplot.close(figure)


def by_query(moments: Iterable[QueryProgress]) -> dict[str, list[QueryProgress]]:
    found: dict[str, list[QueryProgress]] = {}
    for one in moments:
        found.setdefault(one.query, []).append(one)
    return found
