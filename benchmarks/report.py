"""From readings to a verdict: medians, spread, ratios, goals; as a table and as JSON.

Pure: nothing here measures or prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.scenario import DEFAULT, KAFKA, OTTLA, cores

CLIENT_BOUND_CORES: Final = 0.8  # a broker on one loop that uses less was waiting for its client


class Goal(NamedTuple):
    """How a metric of ours must stand to Kafka's."""

    ending: str  # of the metric's name
    ratio: float
    more_is_better: bool
    scenarios: str = ""  # how the names of those begin for which it holds; "": all others


class Floor(NamedTuple):
    """What a metric must reach on two cores, whatever Kafka does."""

    scenario: str
    metric: str
    value: float
    more_is_better: bool


class Row(NamedTuple):
    scenario: str
    metric: str
    values: Mapping[str, Sequence[float]]  # contender -> one reading a round
    verdict: str

    def median_of(self, contender: str) -> float | None:
        readings = self.values.get(contender)
        return median(readings) if readings else None

    def ratio_of(self, contender: str) -> float | None:
        ours, theirs = self.median_of(contender), self.median_of(KAFKA)
        return None if ours is None or not theirs else ours / theirs


REPLICATED: Final = "3 replicas"
OVER_TLS: Final = "TLS"
"""How the names of scenarios with goals of their own begin."""

GOALS: Final = (
    Goal("p99 ms", 1.0, False, REPLICATED),
    Goal("catch-up MB/s", 1.0, True, REPLICATED),
    Goal("consume MB/s", 1.0, True, OVER_TLS),
    Goal("CPU s/GB", 1.0, False, OVER_TLS),
    Goal("MB/s", 1.2, True),
    Goal("requests/s", 1.2, True),
    Goal("p99 ms", 0.5, False),
    Goal("first record s", 0.1, False),
    Goal("idle MB", 0.1, False),
    Goal("CPU s/GB", 2 / 3, False),
)
_SMALL: Final = "one 100 B record a request, 10 connections, 5 in flight, acks=1"
FLOORS: Final = (
    Floor("1 KB, 12 partitions, acks=1", "raw produce MB/s", 700, True),
    Floor("1 KB, 12 partitions, acks=1", "raw consume MB/s", 1200, True),
    Floor(_SMALL, "requests/s", 60_000, True),
    Floor("cold start, one topic", "first record s", 0.6, False),
    Floor("cold start, one topic", "idle MB", 80, False),
    Floor(
        "3000 partitions, controller killed, session timeout included",
        "all leaders elected s",
        5,
        False,
    ),
)

Rounds = Mapping[str, Sequence[Mapping[str, float]]]  # contender -> readings of each round


def rows(scenario: str, rounds: Rounds) -> Iterator[Row]:
    """One row for each metric that any contender gave; server shares go into the verdicts."""
    names = dict.fromkeys(name for turns in rounds.values() for turn in turns for name in turn)
    for metric in names:
        if metric.endswith("(server cores)"):
            continue
        values = {
            contender: [turn[metric] for turn in turns if metric in turn]
            for contender, turns in rounds.items()
        }
        busy = [turn[cores(metric)] for turn in rounds.get(OTTLA, ()) if cores(metric) in turn]
        row = Row(scenario, metric, values, "")
        yield row._replace(verdict=verdict(row, median(busy) if busy else None))


def verdict(row: Row, busy: float | None) -> str:
    """What to say of the goal, and of the floor if there is one."""
    said = []
    goal = next(
        (
            goal
            for goal in GOALS
            if row.metric.endswith(goal.ending) and row.scenario.startswith(goal.scenarios)
        ),
        None,
    )
    ratio = row.ratio_of(OTTLA)
    if goal is not None and ratio is not None:
        met = ratio >= goal.ratio if goal.more_is_better else ratio <= goal.ratio
        client = busy is not None and busy < CLIENT_BOUND_CORES
        said.append("met" if met else "client-bound" if client else "MISSED")
    ours = row.median_of(OTTLA)
    for floor in FLOORS:
        if (floor.scenario, floor.metric) == (row.scenario, row.metric) and ours is not None:
            met = ours >= floor.value if floor.more_is_better else ours <= floor.value
            said.append(f"floor {floor.value:g} {'met' if met else 'MISSED'}")
    return ", ".join(said)


def table(all_rows: Sequence[Row]) -> str:
    """Markdown: medians with the spread of the rounds, ratios to Kafka, verdicts."""
    lines = [
        "| scenario | metric | Kafka | Ottla | ratio | Ottla, default | ratio | goal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in all_rows:
        cells = [row.scenario, row.metric, _spread(row, KAFKA), _spread(row, OTTLA)]
        cells += [_ratio(row, OTTLA), _spread(row, DEFAULT), _ratio(row, DEFAULT), row.verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def as_json(all_rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "scenario": row.scenario,
            "metric": row.metric,
            "verdict": row.verdict,
            "contenders": {
                contender: {
                    "median": row.median_of(contender),
                    "readings": list(readings),
                    "ratio": row.ratio_of(contender),
                }
                for contender, readings in row.values.items()
                if readings
            },
        }
        for row in all_rows
    ]


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _spread(row: Row, contender: str) -> str:
    readings = row.values.get(contender)
    if not readings:
        return ""
    return f"{number(median(readings))} ({number(min(readings))}-{number(max(readings))})"


def _ratio(row: Row, contender: str) -> str:
    ratio = row.ratio_of(contender)
    return "" if ratio is None else f"{ratio:.2f}"
