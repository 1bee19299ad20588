"""ISR changes that leaders wrote."""

from __future__ import annotations

import pytest

from tests.controller.transcript import Actor


@pytest.mark.spec("CTL-10")
def test_what_leaders_wrote_is_believed_and_told_as_metadata_only() -> None:
    actor = Actor()
    actor.run("elected 1 1 2")
    actor.run("create t 0=1,2")
    output = actor.run("isr t-0=1")
    assert "LeaderAndIsr" not in output
    assert "t-0 leader=1 epoch=0 isr=1 v1" in output
    assert "delete /isr_change_notification/isr_change_0" in output


def test_a_state_that_met_another_version_is_told_to_the_replicas_too() -> None:
    actor = Actor()
    actor.run("elected 1 1 2")
    actor.run("create t 0=1,2")
    assert "LeaderAndIsr to 2" in actor.run("reread t-0=1")


def test_states_of_unknown_topics_are_ignored() -> None:
    actor = Actor()
    actor.run("elected 1 1 2")
    actor.run("create t 0=1,2")
    before = actor.state.topics
    actor.run("isr")
    assert actor.state.topics == before
