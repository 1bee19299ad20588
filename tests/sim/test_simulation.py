"""One whole broker with real clients, on virtual time, from one seed.

`make sim SEED=… N=…` runs seeds from SEED on; a failure prints the seed and its whole plan.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ottla.testing.history import Commit, Ended, Fault, Outcome, Poll, Send
from tests.fakes.forgetting_disk import ForgettingDisk
from tests.sim.plan import draw
from tests.sim.simulation import simulate

KEPT: Final = Path(__file__).with_name("seeds.txt")
SOAK: Final = range(100_000, 105_000, 100)
"""Where each hundred of the seeds of `make soak` begins: one that fails leaves the others."""
DISHONEST: Final = range(1_000, 1_015)


def kept_seeds() -> list[int]:
    lines = KEPT.read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("seed", kept_seeds())
def test_what_once_went_wrong_does_not_go_wrong_again(seed: int) -> None:
    report = simulate(draw(seed))
    assert not report.violations, report


@pytest.mark.spec(
    "LOG-07",
    "LOG-34",
    "LOG-39",
    "LOG-74",
    "TXN-08",
    "TXN-17",
    "TXN-18",
    "TXN-35",
    "TXN-36",
    "TXN-38",
    "TXN-41",
    "TXN-46",
    "APP-11",
)
def test_no_misfortune_breaks_a_promise(sim_seed: int) -> None:
    report = simulate(draw(sim_seed))
    assert not report.violations, report


@pytest.mark.parametrize("seed", range(500, 504))
def test_the_same_seed_tells_the_same_story(seed: int) -> None:
    first, second = (simulate(draw(seed), keep_trace=True).trace for _ in range(2))
    assert first.lines == second.lines
    assert first.digest() == second.digest()


def test_a_story_is_the_same_in_another_process_that_orders_sets_differently() -> None:
    program = (
        "from tests.sim.plan import draw\n"
        "from tests.sim.simulation import simulate\n"
        "reports = [simulate(draw(seed), keep_trace=True) for seed in range(600, 603)]\n"
        "print([report.trace.digest() for report in reports])\n"
    )

    def told(hash_seed: str) -> str:
        root = Path(__file__).parents[2]
        paths = os.pathsep.join([str(root / "src"), str(root)])
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, cwd=root
        ).stdout

    assert told("1") == told("2")


def test_other_seeds_tell_other_stories() -> None:
    reports = [simulate(draw(seed), keep_trace=True) for seed in range(5)]
    assert len({report.trace.digest() for report in reports}) == 5


def test_a_disk_that_only_says_it_flushes_is_found_out() -> None:
    """The simulation can fail: without flushes a power cut breaks promises on nearly every seed."""

    def dishonest(now_ms: Callable[[], int]) -> ForgettingDisk:
        disk = ForgettingDisk(now_ms)
        disk.honest = False
        return disk

    plans = [draw(seed, power=True) for seed in DISHONEST]
    caught = [plan.seed for plan in plans if simulate(plan, make_disk=dishonest).violations]
    assert len(caught) >= len(DISHONEST) - 1, caught


def test_clients_do_work_while_things_go_wrong() -> None:
    """A simulation in which nothing happens would hold every promise."""
    reports = [simulate(draw(seed)) for seed in range(700, 710)]
    events = [event for report in reports for event in report.events]
    assert sum(isinstance(event, Send) for event in events) > 1_000
    assert sum(len(event.records) for event in events if isinstance(event, Poll)) > 2_000
    assert len({event.name for event in events if isinstance(event, Fault)}) >= 8
    ends = {(event.commit, event.outcome) for event in events if isinstance(event, Ended)}
    assert ends >= {(True, Outcome.OK), (False, Outcome.OK), (True, Outcome.UNKNOWN)}
    assert sum(isinstance(event, Poll) and event.committed for event in events) > 30
    offsets = [one for one in events if isinstance(one, Commit) and one.transaction]
    assert sum(one.outcome is Outcome.OK for one in offsets) > 50
    workers = {one.process.rpartition(".")[0] for one in offsets}
    assert len({one.process for one in offsets}) > len(workers) >= 5, "none began anew"


@pytest.mark.slow
@pytest.mark.parametrize("first", SOAK)
def test_thousands_of_seeds_break_no_promise(first: int) -> None:
    broken = {}
    for seed in range(first, first + SOAK.step):
        if violations := simulate(draw(seed)).violations:
            broken[seed] = violations[0]
    assert not broken
