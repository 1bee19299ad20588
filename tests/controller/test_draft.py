"""One event in the making."""

from __future__ import annotations

from dataclasses import replace

from ottla.controller.draft import Draft
from ottla.controller.state import Deletion, Leadership
from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.store.port import Create, Set
from tests.controller.transcript import Actor, topic_id

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
LED = Leadership(BrokerId(2), (BrokerId(2),), LeaderEpoch(6), ControllerEpoch(1), 0)


def cluster() -> Actor:
    actor = Actor()
    actor.run("elected 1 1 2 t-0=1,2/1/1,2 u-0=1/1/1")
    return actor


def test_reads_see_the_change_and_the_old_state_does_not() -> None:
    state = cluster().state
    draft = Draft(state)
    draft.lead(T0, LED)
    assert draft.partition(T0).leader == 2
    assert state.topics["t"].partitions[0].leader == 1
    assert draft.step().state.topics["t"].partitions[0].leader == 2


def test_topics_nobody_touched_are_shared_with_the_old_state() -> None:
    state = cluster().state
    draft = Draft(state)
    draft.lead(T0, LED)
    step = draft.step()
    assert step.state.topics["u"] is state.topics["u"]
    assert Draft(state).step().state is state


def test_a_first_leader_is_created_and_a_later_one_set_on_the_version_that_was_seen() -> None:
    draft = Draft(cluster().state)
    draft.lead(T0, LED)
    (write,) = draft.writes
    assert isinstance(write, Set) and write.version == 10
    leadership = draft.partition(T0).leadership
    assert leadership is not None and leadership.version == 11
    draft.put(U0, replace(draft.partition(U0), leadership=None))
    draft.lead(U0, LED)
    assert all(isinstance(op, Create) for op in draft.writes[1:])


def test_a_dropped_topic_is_gone() -> None:
    draft = Draft(cluster().state)
    draft.lead(T0, LED)
    draft.drop_topic("t")
    assert set(draft.step().state.topics) == {"u"}
    assert draft.topics["u"].id == topic_id("u")


def test_only_replicas_on_brokers_that_stay_could_lead() -> None:
    actor = cluster()
    actor.run("shutdown 2")
    assert Draft(actor.state).live_replicas(T0) == {1}


def test_deletions_are_copied_once_and_the_old_state_keeps_its_own() -> None:
    state = replace(cluster().state, deletions={"t": Deletion()})
    draft = Draft(state)
    draft.put_deletion("u", Deletion())
    copied = draft.state.deletions
    draft.put_deletion("t", Deletion(started=True))
    assert draft.state.deletions is copied
    assert state.deletions == {"t": Deletion()}
    assert draft.step().state.deletions == {"t": Deletion(started=True), "u": Deletion()}
    draft.state = replace(draft.state, deletions=state.deletions)
    draft.put_deletion("u", Deletion())
    assert state.deletions == {"t": Deletion()}, "one that another put there is not changed either"
