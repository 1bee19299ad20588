"""Replicas that move."""

from __future__ import annotations

import pytest

from tests.controller.transcript import play


@pytest.mark.spec("CTL-67", "REP-73")
def test_replicas_join_catch_up_take_over_and_the_old_ones_go() -> None:
    play("reassignment")


@pytest.mark.spec("REP-73")
def test_a_move_called_off_ends_where_it_began() -> None:
    play("reassignment_called_off")


@pytest.mark.spec("REP-73", "CTL-50")
def test_a_new_controller_goes_on_with_a_move_and_deletes_only_after_it() -> None:
    play("reassignment_resumed")
