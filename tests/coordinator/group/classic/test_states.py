"""The table of a group's states is Kafka's."""

from __future__ import annotations

import pytest

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import CAN_REBALANCE, MOVES, GroupPhase
from ottla.model.clock import WallMs


@pytest.mark.spec("GRP-08", "GRP-09", "GRP-11")
def test_a_phase_is_reached_from_its_legal_predecessors_only() -> None:
    before = {
        phase: {
            one for one, moves in MOVES.items() if phase in moves and one is not GroupPhase.DEAD
        }
        for phase in GroupPhase
    }
    assert before == {
        GroupPhase.EMPTY: {GroupPhase.PREPARING},
        GroupPhase.PREPARING: {GroupPhase.STABLE, GroupPhase.COMPLETING, GroupPhase.EMPTY},
        GroupPhase.COMPLETING: {GroupPhase.PREPARING},
        GroupPhase.STABLE: {GroupPhase.COMPLETING},
        GroupPhase.DEAD: set(GroupPhase) - {GroupPhase.DEAD},
    }
    assert {GroupPhase.STABLE, GroupPhase.COMPLETING, GroupPhase.EMPTY} == CAN_REBALANCE


@pytest.mark.spec("GRP-09", "GRP-10")
def test_an_illegal_move_is_caught_and_a_legal_one_is_dated() -> None:
    group = ClassicGroup("g", WallMs(5))
    group.move(GroupPhase.PREPARING, WallMs(8))
    assert group.since_ms == 8
    with pytest.raises(AssertionError):
        group.move(GroupPhase.STABLE, WallMs(9))
