"""Promise: a change makes small requests no slower. Brokers of two checkouts take turns.

    python -m benchmarks.paired SOURCE [ROUNDS]

SOURCE is the folder `src` of the other checkout. Printed are the medians of both, their spread, and
the median of the ratios of the rounds: what disturbs the machine disturbs both halves of a round.
The broker's CPU time for a request is disturbed least.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import ottla
from benchmarks import small_requests
from benchmarks.contenders import OTTLA_SETTINGS, Contender
from benchmarks.report import number
from benchmarks.scenario import Readings, Scenario, cores
from tools import nodes

ROUNDS: Final = 7
HERE: Final = Path(ottla.__file__).parents[1]
SETTINGS: Final = {"flush.before.ack": "never"}
RATE: Final = "requests/s"


def main(source: str, rounds: str = str(ROUNDS)) -> None:
    [scenario] = small_requests.scenarios(full=False)
    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder,
        nodes.ottla(Path(folder, "other"), OTTLA_SETTINGS, source=Path(source)) as other,
        nodes.ottla(Path(folder, "here"), OTTLA_SETTINGS, source=HERE) as here,
    ):
        pair = (Contender("other", other, SETTINGS), Contender("here", here, SETTINGS))
        for contender in pair:
            scenario.measure(contender)  # warms it
        readings = [_round(scenario, pair, number) for number in range(int(rounds))]
    print(f"{scenario.name}, {rounds} rounds")
    print(f"| metric | {source} | here | ratio, median of the rounds |\n|---|---|---|---|")
    for metric in readings[0][0]:
        before = [reading[metric] for reading, _ in readings]
        after = [reading[metric] for _, reading in readings]
        ratios = [mine / others for mine, others in zip(after, before, strict=True)]
        shares = f"{median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
        print(f"| {metric} | {_spread(before)} | {_spread(after)} | {shares} |")


def _round(
    scenario: Scenario, pair: tuple[Contender, Contender], number_of_round: int
) -> tuple[Readings, Readings]:
    """Readings of the other and of this one; who is first changes from round to round."""
    other, here = pair
    if number_of_round % 2:
        mine = _measured(scenario, here)
        return _measured(scenario, other), mine
    others = _measured(scenario, other)
    return others, _measured(scenario, here)


def _measured(scenario: Scenario, contender: Contender) -> Readings:
    readings = dict(scenario.measure(contender))
    cpu_us = readings.pop(cores(RATE)) / readings[RATE] * 1e6
    return {**readings, "CPU us a request": cpu_us}


def _spread(readings: Sequence[float]) -> str:
    return f"{number(median(readings))} ({number(min(readings))}-{number(max(readings))})"


if __name__ == "__main__":
    main(*sys.argv[1:])
