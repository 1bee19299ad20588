"""Three whole brokers with real clients, on virtual time, from one seed.

`make sim SEED=… N=…` runs seeds from SEED on; a failure prints the seed and its whole plan.
"""

from __future__ import annotations

import pytest

from tests.sim.cluster.plan import draw
from tests.sim.cluster.simulation import simulate


def test_no_fault_in_a_cluster_breaks_a_promise(sim_seed: int) -> None:
    report = simulate(draw(sim_seed))
    assert not report.violations, report


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_runs_the_same_way(seed: int) -> None:
    first, second = (simulate(draw(seed), keep_trace=True).trace for _ in range(2))
    assert first.lines == second.lines
