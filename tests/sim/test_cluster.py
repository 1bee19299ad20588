"""Three whole brokers with real clients, on virtual time, from one seed.

`make sim SEED=… N=…` runs seeds from SEED on; a failure prints the seed and its whole plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeGuard

import pytest

from ottla.testing.history import (
    FINAL,
    Commit,
    Ended,
    Fault,
    Leads,
    Outcome,
    Poll,
    Retention,
    Send,
)
from tests.sim.cluster.moments import Moment
from tests.sim.cluster.plan import ClusterFault, Target, draw
from tests.sim.cluster.simulation import simulate

KEPT: Final = Path(__file__).with_name("cluster_seeds.txt")
SOAK: Final = range(100_000, 105_000, 100)
"""Where each hundred of the seeds of `make soak` begins: one that fails leaves the others."""


def kept_seeds() -> list[int]:
    lines = KEPT.read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("seed", kept_seeds())
def test_what_once_went_wrong_in_a_cluster_does_not_go_wrong_again(seed: int) -> None:
    report = simulate(draw(seed))
    assert not report.violations, report


@pytest.mark.spec("REP-23", "CTL-01", "TXN-35", "TXN-36")
def test_no_fault_in_a_cluster_breaks_a_promise(cluster_seed: int) -> None:
    report = simulate(draw(cluster_seed))
    assert not report.violations, report


@pytest.mark.parametrize("seed", range(500, 503))
def test_the_same_seed_of_a_cluster_runs_the_same_way(seed: int) -> None:
    first, second = (simulate(draw(seed), keep_trace=True).trace for _ in range(2))
    assert first.lines == second.lines


def test_leaders_change_and_clients_work_while_things_go_wrong() -> None:
    """A simulation in which nothing happens would hold every promise."""
    events = [event for seed in range(600, 620) for event in simulate(draw(seed)).events]
    assert sum(isinstance(event, Send) for event in events) > 1_000
    assert sum(len(event.records) for event in events if isinstance(event, Poll)) > 2_000
    assert len({event.name.split(":")[0] for event in events if isinstance(event, Fault)}) >= 10
    assert max(event.leader_epoch for event in events if isinstance(event, Leads)) >= 3
    ends = [event for event in events if isinstance(event, Ended)]
    assert sum(end.outcome is Outcome.OK for end in ends) > 20
    commits = [event for event in events if isinstance(event, Commit)]
    assert {bool(commit.transaction) for commit in commits} == {True, False}


def test_seeds_draw_clients_and_faults_of_every_kind() -> None:
    plans = [draw(seed) for seed in range(200)]
    faults = [fault for plan in plans for fault in plan.faults]
    assert {fault.fault for fault in faults} == set(ClusterFault)
    assert {fault.target for fault in faults} == set(Target)
    assert {fault.at for fault in faults} == set(Moment)
    protocols = {plan.relaying.protocol for plan in plans if plan.relaying is not None}
    assert protocols == {"classic", "consumer"}
    assert {dealings.version for plan in plans for dealings in plan.dealings} == {1, 2}
    assert sum(topic.compacted for plan in plans for topic in plan.topics) > 20
    assert sum(plan.duties.operations > 0 for plan in plans) > 50, "reassignments"
    assert sum(plan.churn > 0 for plan in plans) > 50, "topics that are deleted"
    assert sum(plan.logins is not None for plan in plans) > 30


def test_logs_are_compacted_while_things_go_wrong() -> None:
    """Some of the records that were written are gone at the end, and their offsets with them."""
    compacted = [seed for seed in range(60) if any(t.compacted for t in draw(seed).topics)]
    gone = 0
    for seed in compacted[:3]:
        report = simulate(draw(seed))
        names = {event.partition for event in report.events if is_compacted(event)}
        read = [
            offset
            for event in report.events
            if isinstance(event, Poll) and event.process == FINAL and event.partition in names
            for offset, _ in event.records
        ]
        written = [
            event
            for event in report.events
            if isinstance(event, Send) and event.outcome is Outcome.OK and event.partition in names
        ]
        gone += max(0, len(written) - len(read))
    assert gone > 20


def is_compacted(event: object) -> TypeGuard[Retention]:
    return isinstance(event, Retention) and event.compacted


@pytest.mark.slow
@pytest.mark.parametrize("first", SOAK)
def test_thousands_of_seeds_of_a_cluster_break_no_promise(first: int) -> None:
    broken = {}
    for seed in range(first, first + SOAK.step):
        if violations := simulate(draw(seed)).violations:
            broken[seed] = violations[0]
    assert not broken
