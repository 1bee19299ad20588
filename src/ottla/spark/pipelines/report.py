"""A run as a picture: throughput and lag over time, a row of charts for each query.

Owns: what the picture shows, from a single batch to very many. Reads the history that a run writes
beside its checkpoints. Queries have charts of their own: lines never cross, and need no legend.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError
from ottla.spark.pipelines.progress import QueryProgress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: Final = (".png", ".svg")
WIDTH_INCHES: Final = 11.0
ROW_INCHES: Final = 1.7
TITLE_INCHES: Final = 0.8
MAX_POINTS: Final = 300
"""Of a line: more than that are drawn as the median and range of neighbours."""
FEW_POINTS: Final = 60
"""Up to so many each has a mark."""
MARGIN: Final = 0.03
LEAST_ROOM_MS: Final = 1_000
DAY_MS: Final = 86_400_000
"""The unit of matplotlib's times."""


class Bin(NamedTuple):
    """One point of a line: the middle of some values, and how far they reach."""

    at_ms: int
    middle: float
    least: float
    most: float


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

    queries = by_query(moments)
    size = (WIDTH_INCHES, TITLE_INCHES + ROW_INCHES * len(queries))
    figure, grid = pyplot.subplots(
        len(queries), 2, sharex=True, squeeze=False, figsize=size, layout="constrained"
    )
    figure.suptitle(title)
    for (query, those), (rates, lags) in zip(queries.items(), grid, strict=True):
        times = [one.at_ms for one in those]
        rates.set_title(f"{query}: {summary(those)}", loc="left", fontsize="medium")
        _plot(rates, bins_of(times, [one.rows_in_s for one in those]))
        known = [(one.at_ms, one.lag_records) for one in those if one.lag_records is not None]
        if known:
            _plot(lags, bins_of([at for at, _ in known], [float(lag) for _, lag in known]))
        else:
            lags.text(0.5, 0.5, "reads no topic", ha="center", transform=lags.transAxes)
            lags.set_yticks([])
        rates.set_ylabel("rows/s")
        lags.set_ylabel("records behind")
    _format_times(grid[-1], moments)
    figure.savefig(to)
    pyplot.close(figure)


def summary(those: Sequence[QueryProgress]) -> str:
    """What a query has done, in a few words."""
    count = len(those)
    late = sum(one.late_rows for one in those)
    told = f"{count:,} {'batch' if count == 1 else 'batches'}"
    told += f", {sum(one.rows_in for one in those):,} rows"
    return told + (f", {late:,} late rows dropped" if late else "")


def bins_of(times_ms: Sequence[int], values: Sequence[float]) -> list[Bin]:
    """One point for each value, or, of very many, the median and the range of neighbours."""
    count = len(values)
    if count <= MAX_POINTS:
        return [Bin(at, one, one, one) for at, one in zip(times_ms, values, strict=True)]
    made = []
    for number in range(MAX_POINTS):
        part = slice(number * count // MAX_POINTS, (number + 1) * count // MAX_POINTS)
        some = values[part]
        made.append(Bin(times_ms[part][len(some) // 2], median(some), min(some), max(some)))
    return made


def _plot(axes: Axes, bins: Sequence[Bin]) -> None:
    times = [point.at_ms / DAY_MS for point in bins]
    marker = "o" if len(bins) <= FEW_POINTS else ""
    axes.plot(times, [point.middle for point in bins], marker=marker, markersize=4, linewidth=1)
    if any(point.least != point.most for point in bins):
        least, most = [point.least for point in bins], [point.most for point in bins]
        axes.fill_between(times, least, most, alpha=0.25, linewidth=0)
    if len(bins) == 1:
        place, label = (times[0], bins[0].middle), f"{bins[0].middle:,.0f}"
        axes.annotate(label, place, (8, -4), textcoords="offset points")
    axes.set_ylim(0, max(max(point.most for point in bins) * 1.1, 1))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="y", nbins=4)
    axes.grid(alpha=0.3)


def _format_times(axes: Sequence[Axes], moments: Sequence[QueryProgress]) -> None:
    """The same time axis below all; a single moment gets some room around it."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    times = [one.at_ms / DAY_MS for one in moments]
    room = max((max(times) - min(times)) * MARGIN, LEAST_ROOM_MS / DAY_MS)
    for one in axes:
        one.set_xlim(min(times) - room, max(times) + room)
        locator = AutoDateLocator(maxticks=7)  # type: ignore[no-untyped-call]
        one.xaxis.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
        one.xaxis.set_major_formatter(formatter)


def by_query(moments: Iterable[QueryProgress]) -> dict[str, list[QueryProgress]]:
    found: dict[str, list[QueryProgress]] = {}
    for one in moments:
        found.setdefault(one.query, []).append(one)
    return found
