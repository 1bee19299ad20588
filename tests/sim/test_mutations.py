"""The simulation finds each protection that is removed."""

from __future__ import annotations

from itertools import count, islice

import pytest

from tests.sim.cluster.mutations import MUTATIONS, Mutation
from tests.sim.cluster.simulation import simulate

SEEDS_MAX = 200
SEEDS_INTACT = range(30)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_removed_protection_is_found(mutation: Mutation) -> None:
    with mutation.applied():
        for seed in islice(count(), SEEDS_MAX):
            report = simulate(mutation.plan(seed))
            found = [each for each in report.violations if each.invariant in mutation.shows]
            if found:
                print(f"{mutation.name}: seed {seed}: {found[0]}")
                return
    pytest.fail(f"{SEEDS_MAX} seeds do not notice that this is gone: {mutation.name}")


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_same_plans_find_nothing_while_it_is_there(mutation: Mutation) -> None:
    for seed in SEEDS_INTACT:
        report = simulate(mutation.plan(seed))
        assert not report.violations, report
