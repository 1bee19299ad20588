"""What a new controller does first."""

from __future__ import annotations

import pytest

from tests.controller.transcript import play


@pytest.mark.spec("CTL-17", "CTL-18", "CTL-32", "CTL-62", "CTL-65")
def test_a_new_controller_keeps_live_leaders_and_replaces_dead_ones() -> None:
    play("restart")


@pytest.mark.spec("CTL-17")
def test_a_single_node_that_restarts_writes_nothing_and_leads_again() -> None:
    play("single_node")


@pytest.mark.spec("REP-37")
def test_a_leader_that_was_away_leads_on_under_a_new_epoch() -> None:
    play("returned")
