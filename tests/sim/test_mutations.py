"""The simulation finds each protection that is removed."""

from __future__ import annotations

from itertools import count, islice

import pytest

from tests.sim.cluster.mutations import MUTATIONS, Mutation
from tests.sim.cluster.simulation import simulate

SEEDS_MAX = 2_000


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_removed_protection_is_found(mutation: Mutation) -> None:
    with mutation.applied():
        for seed in islice(count(), SEEDS_MAX):
            report = simulate(mutation.plan(seed))
            if report.violations:
                print(f"{mutation.name}: found by seed {seed}: {report.violations[0]}")
                return
    pytest.fail(f"{SEEDS_MAX} seeds do not notice that this is gone: {mutation.name}")


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_same_plans_find_nothing_while_it_is_there(mutation: Mutation) -> None:
    for seed in range(10):
        report = simulate(mutation.plan(seed))
        assert not report.violations, report
