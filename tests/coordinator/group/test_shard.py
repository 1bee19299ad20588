"""One partition's groups: loading, timers, giving up, and any history at all."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from ottla.coordinator.executor import perform
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.member import GroupPhase, JoinReply, SyncReply
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import Scene, code_of, offset


@pytest.mark.spec("GRP-74")
def test_members_that_do_not_come_back_after_loading_are_out_when_their_session_ends() -> None:
    scene = Scene()
    scene.stable(session_ms=10_000)
    after = scene.crash()
    after.pass_ms(9_990)
    assert after.phase() is GroupPhase.STABLE
    after.pass_ms(10)
    assert (after.phase(), after.group.members) == (GroupPhase.EMPTY, {})
    assert after.group.subscribed is None, "nobody is known to read anything"


@pytest.mark.spec("GRP-75", "GRP-76", "GRP-77", "GRP-74")
def test_members_find_their_group_again_after_loading() -> None:
    scene = Scene()
    leader, other = scene.stable(2)
    scene.commit(offset(5), member_id=other.member_id, generation=1)
    after = scene.crash()
    assert (after.group.phase, after.group.subscribed) == (GroupPhase.STABLE, frozenset({"t"}))
    assert after.heartbeat(leader) is ErrorCode.none
    assert after.start_sync(other)[0].assignment == other.member_id.encode()
    assert after.committed() == 5
    after.pass_ms(9_000)
    after.heartbeat(leader)
    after.pass_ms(9_000)
    assert set(after.group.members) == {leader.member_id}, "sessions began with the loading"


@pytest.mark.spec("GRP-77", "GRP-26")
def test_a_group_with_more_members_than_are_allowed_rebalances_when_loaded() -> None:
    scene = Scene()
    scene.stable(3)
    after = Scene(scene.log, max_size=2)
    assert after.group.phase is GroupPhase.PREPARING


@pytest.mark.spec("GRP-77")
def test_offsets_without_a_group_make_one() -> None:
    scene = Scene()
    scene.commit(offset(5))
    scene.stable()
    only_offsets = [scene.log[0]]
    assert Scene(only_offsets).group.phase is GroupPhase.EMPTY


@pytest.mark.spec("GRP-78")
def test_whoever_waits_hears_that_the_group_is_coordinated_elsewhere() -> None:
    scene = Scene()
    joined = scene.stable(2)
    waiting = scene.start_join(joined[0].member_id)
    perform(scene.shard.on_unloaded())
    assert waiting[0].error is ErrorCode.not_coordinator
    assert not scene.shard.groups


@pytest.mark.spec("GRP-78")
def test_whoever_waits_for_an_assignment_hears_it_too() -> None:
    scene = Scene()
    waiting = [scene.start_join() for _ in range(2)]
    scene.pass_ms(1)
    synced = scene.start_sync(waiting[1][0])
    perform(scene.shard.on_unloaded())
    assert synced[0].error is ErrorCode.not_coordinator


class GroupHistory(RuleBasedStateMachine):
    """Members come, go, stall and crash in any order, against what every group promises."""

    members = Bundle("members")

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene(initial_rebalance_delay_ms=100)
        self.joins: dict[str, list[JoinReply]] = {}
        self.syncs: list[tuple[int, str, list[SyncReply]]] = []
        self.generation = 0
        self.given: dict[tuple[int, str], bytes] = {}
        self.acknowledged: int | None = None

    def require_member(self, member_id: str) -> JoinReply:
        group = self.scene.group
        return JoinReply(
            member_id=member_id,
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader or "",
        )

    @rule(target=members, instance=st.sampled_from([None, None, "i", "j"]))
    def comes(self, instance: str | None) -> object:
        replies = self.scene.start_join(instance=instance, session_ms=6_000, rebalance_ms=9_000)
        ids = [
            id
            for id, member in self.scene.group.members.items()
            if member.awaits_join is not None and id not in self.joins
        ]
        for id in ids:
            self.joins[id] = replies
        return multiple(*ids)

    @rule(member=members)
    def rejoins(self, member: str) -> None:
        group = self.scene.classic()
        instance = None
        if group is not None and member in group.members:
            instance = group.members[member].instance_id
        code_of(
            self.scene.start_join, member, instance=instance, session_ms=6_000, rebalance_ms=9_000
        )

    @rule(member=members, part=st.binary(max_size=3))
    def syncs_as_it_can(self, member: str, part: bytes) -> None:
        group = self.scene.classic()
        if group is None or member not in group.members:
            return
        instance = group.members[member].instance_id
        joined, leads = self.require_member(member), group.leader == member
        was = group.phase
        given = {id: part + id.encode() for id in group.members}
        try:
            replies = self.scene.start_sync(joined, given, instance=instance)
        except Exception as refusal:
            assert getattr(refusal, "code", None) is not None, refusal
            return
        self.syncs.append((joined.generation, member, replies))
        if was is GroupPhase.COMPLETING and leads:
            for id, assignment in given.items():
                self.given[joined.generation, id] = assignment

    @rule(member=members)
    def beats(self, member: str) -> None:
        if "g" in self.scene.shard.groups:
            self.scene.heartbeat(self.require_member(member))

    @rule(member=members)
    def goes(self, member: str) -> None:
        if "g" in self.scene.shard.groups:
            self.scene.leave(MemberIdentity(member))

    @rule(ms=st.sampled_from([1, 100, 3_000, 7_000, 20_000]))
    def time_passes(self, ms: int) -> None:
        self.scene.pass_ms(ms)

    @rule(member=members, value=st.integers(0, 100), late=st.booleans())
    def commits(self, member: str, value: int, late: bool) -> None:
        group = self.scene.classic()
        if group is None:
            return
        generation = group.generation - late
        instance = group.members[member].instance_id if member in group.members else None
        code = code_of(
            self.scene.commit,
            offset(value),
            member_id=member,
            generation=generation,
            instance=instance,
        )
        if code is ErrorCode.none:
            assert not late or group.phase is GroupPhase.EMPTY or generation < 0
            self.acknowledged = value

    @rule()
    def the_broker_crashes(self) -> None:
        self.scene = self.scene.crash()
        self.generation = 0 if "g" not in self.scene.shard.groups else self.scene.group.generation

    @invariant()
    def generations_only_grow(self) -> None:
        if "g" in self.scene.shard.groups:
            assert self.scene.group.generation >= self.generation
            self.generation = self.scene.group.generation

    @invariant()
    def everybody_gets_what_the_leader_gave_in_that_generation(self) -> None:
        for generation, member, replies in self.syncs:
            assert len(replies) <= 1
            for reply in replies:
                if reply.error is ErrorCode.none and (generation, member) in self.given:
                    assert reply.assignment.endswith(member.encode()) or not reply.assignment

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        assert self.scene.committed() == self.acknowledged

    @invariant()
    def the_group_is_in_order(self) -> None:
        if "g" not in self.scene.shard.groups:
            return
        group = self.scene.group
        assert (group.phase is GroupPhase.EMPTY) <= (not group.members)
        assert group.leader is None or group.leader in group.members
        assert set(group.static.values()) <= set(group.members)
        if group.phase is GroupPhase.STABLE:
            assert group.protocol is not None


GroupHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestGroupHistory = pytest.mark.spec("GRP-09", "GRP-36", "GRP-47")(GroupHistory.TestCase)
