"""Who leads now."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.controller.election import (
    Choice,
    when_offline,
    when_preferred,
    when_reassigned,
    when_shutting_down,
)
from ottla.controller.state import Replicas
from ottla.model.ids import BrokerId


def ids(*numbers: int) -> Replicas:
    return tuple(map(BrokerId, numbers))


BROKERS = st.lists(st.integers(0, 5).map(BrokerId), min_size=1, max_size=6, unique=True).map(tuple)


@pytest.mark.spec("CTL-66", "CTL-70")
def test_offline_takes_the_first_live_in_sync_replica_in_assignment_order() -> None:
    chosen = when_offline(ids(1, 2, 3), ids(3, 2), ids(2, 3), unclean_allowed=False)
    assert chosen == Choice(BrokerId(2), ids(3, 2))


@pytest.mark.spec("CTL-66")
def test_offline_drops_dead_members_from_the_isr() -> None:
    chosen = when_offline(ids(1, 2, 3), ids(1, 2, 3), ids(2), unclean_allowed=False)
    assert chosen == Choice(BrokerId(2), ids(2))


@pytest.mark.spec("CTL-66")
def test_offline_leaves_the_isr_only_when_allowed_and_only_if_nobody_in_it_lives() -> None:
    assert when_offline(ids(1, 2, 3), ids(1), ids(3), unclean_allowed=False) is None
    unclean = when_offline(ids(1, 2, 3), ids(1), ids(3), unclean_allowed=True)
    assert unclean == Choice(BrokerId(3), ids(3), unclean=True)
    clean = when_offline(ids(1, 2, 3), ids(3), ids(2, 3), unclean_allowed=True)
    assert clean == Choice(BrokerId(3), ids(3))


@pytest.mark.spec("CTL-67")
def test_reassigned_takes_the_first_of_the_target_that_is_in_sync() -> None:
    assert when_reassigned(ids(4, 5), ids(1, 5), ids(1, 4, 5)) == Choice(BrokerId(5), ids(1, 5))
    assert when_reassigned(ids(4, 5), ids(1), ids(1, 4, 5)) is None


@pytest.mark.spec("CTL-68")
def test_preferred_is_the_first_replica_or_nobody() -> None:
    assert when_preferred(ids(1, 2), ids(2, 1), ids(1, 2)) == Choice(BrokerId(1), ids(2, 1))
    assert when_preferred(ids(1, 2), ids(2), ids(1, 2)) is None
    assert when_preferred(ids(1, 2), ids(1, 2), ids(2)) is None


@pytest.mark.spec("CTL-69")
def test_leaving_brokers_are_passed_over_and_quit_the_isr() -> None:
    chosen = when_shutting_down(ids(1, 2, 3), ids(1, 2, 3), ids(1, 2, 3), shutting_down=ids(1, 2))
    assert chosen == Choice(BrokerId(3), ids(3))
    assert when_shutting_down(ids(1, 2), ids(1, 2), ids(1, 2), shutting_down=ids(1, 2)) is None


@pytest.mark.spec("CTL-66", "CTL-67", "CTL-68", "CTL-69", "CTL-70")
@given(BROKERS, BROKERS, BROKERS, BROKERS)
def test_whoever_is_elected_is_a_live_replica_and_in_its_own_isr(
    replicas: Replicas, isr: Replicas, live: Replicas, leaving: Replicas
) -> None:
    isr = tuple(member for member in isr if member in replicas)
    choices = [
        when_offline(replicas, isr, live, unclean_allowed=True),
        when_offline(replicas, isr, live, unclean_allowed=False),
        when_reassigned(replicas, isr, live),
        when_preferred(replicas, isr, live),
        when_shutting_down(replicas, isr, live, leaving),
    ]
    for choice in choices:
        if choice is None:
            continue
        assert choice.leader in replicas
        assert choice.leader in live
        assert choice.leader in choice.isr
        assert choice.unclean == (choice.leader not in isr)
        if not choice.unclean:
            assert set(choice.isr) <= set(isr)
            eligible = [b for b in replicas if b in live and b in isr]
            assert choice.leader == eligible[0] or choice == choices[4]
