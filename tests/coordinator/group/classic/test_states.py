"""The table of a group's states is Kafka's."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.states import CAN_REBALANCE, MOVES, Phase


@pytest.mark.spec("GRP-08", "GRP-09", "GRP-11")
def test_a_phase_is_reached_from_its_legal_predecessors_only() -> None:
    before = {
        phase: {one for one, moves in MOVES.items() if phase in moves and one is not Phase.DEAD}
        for phase in Phase
    }
    assert before == {
        Phase.EMPTY: {Phase.PREPARING},
        Phase.PREPARING: {Phase.STABLE, Phase.COMPLETING, Phase.EMPTY},
        Phase.COMPLETING: {Phase.PREPARING},
        Phase.STABLE: {Phase.COMPLETING},
        Phase.DEAD: set(Phase) - {Phase.DEAD},
    }
    assert {Phase.STABLE, Phase.COMPLETING, Phase.EMPTY} == CAN_REBALANCE


@pytest.mark.spec("GRP-09", "GRP-10")
def test_an_illegal_move_is_caught_and_a_legal_one_is_dated() -> None:
    group = ClassicGroup("g", 5)
    group.move(Phase.PREPARING, 8)
    assert group.since_ms == 8
    with pytest.raises(AssertionError):
        group.move(Phase.STABLE, 9)
