"""Elections that somebody asks for."""

from __future__ import annotations

import pytest

from ottla.controller import election_requests
from tests.controller.transcript import Actor, play


@pytest.mark.spec("CTL-68", "CTL-78")
def test_leaders_go_back_to_the_first_replica_only_if_it_can_lead() -> None:
    play("preferred_election")


@pytest.mark.spec("CTL-63", "REP-71")
def test_too_many_leaders_away_from_home_are_brought_back() -> None:
    play("auto_balance")


@pytest.mark.spec("CTL-63", "MON-14")
def test_a_tenth_of_the_leaders_may_be_elsewhere() -> None:
    actor = Actor()
    home = " ".join(f"t-{number}=1,2/1/1,2" for number in range(9))
    actor.run(f"elected 1 1 2 {home} t-9=1,2/2/1,2")
    assert election_requests.imbalance(actor.state) == 1
    assert actor.run("balance") == "nothing"
