"""A broker that stops in order."""

from __future__ import annotations

import pytest

from tests.controller.transcript import Actor, play


@pytest.mark.spec("CTL-34", "CTL-69")
def test_a_stopping_broker_loses_its_leaders_and_leaves_the_isrs() -> None:
    play("controlled_shutdown")


@pytest.mark.spec("CTL-69")
def test_partitions_that_nobody_else_can_lead_are_named_in_the_answer() -> None:
    actor = Actor()
    actor.run("elected 1 1 2 t-0=1,2/1/1 t-1=1,2/1/1,2")
    assert actor.run("shutdown 1").endswith("reply  1: t-0")


@pytest.mark.spec("CTL-34")
def test_a_stopping_broker_is_not_chosen_while_it_stops() -> None:
    actor = Actor()
    actor.run("elected 1 1 2 3")
    actor.run("create t 0=1,2,3")
    actor.run("shutdown 2")
    assert "leader=3" in actor.run("brokers 2 3")


@pytest.mark.spec("CTL-34")
def test_a_stopping_broker_gets_no_new_replicas_if_others_suffice() -> None:
    actor = Actor()
    actor.run("elected 1 1 2 3")
    actor.run("shutdown 2")
    actor.run("create t partitions=6 replicas=2")
    placed = actor.state.topics["t"].partitions.values()
    assert {broker for partition in placed for broker in partition.replicas} == {1, 3}
    actor.run("create all partitions=1 replicas=3")
    assert set(actor.state.topics["all"].partitions[0].replicas) == {1, 2, 3}
