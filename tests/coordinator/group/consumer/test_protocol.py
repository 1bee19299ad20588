"""The consumer protocol as a whole, against what every group promises.

Members of both protocols come, go, stall, lose replies and are killed; topics grow and vanish;
brokers crash. Whatever happens: no partition is held by two members as the members see it, epochs
never go back, what is loaded is what was live, and once nothing changes any more the group comes
to rest with every partition held.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.member import GroupPhase, JoinReply
from ottla.coordinator.group.consumer.classic_metadata import read_assignment, write_assignment
from ottla.coordinator.group.consumer.group import ConsumerGroup, GroupState
from ottla.coordinator.group.consumer.topic_partitions import (
    NO_PARTS,
    Parts,
    TopicIdPartition,
    by_name,
    from_names,
)
from ottla.model.errors import ErrorCode, KafkaError
from tests.coordinator.group.consumer.scene import Client, ConsumerScene, protocols
from tests.coordinator.group.scene import GROUP, code_of, offset

NAMES = ("a", "b", "c", "d")
CLASSIC_NAMES = ("x", "y")
STATIC = {"a": "i", "x": "k"}


class ClassicClient:
    """A consumer of the classic protocol, eager or cooperative."""

    def __init__(self, scene: ConsumerScene, name: str, *, eager: bool) -> None:
        self.scene = scene
        self.eager = eager
        self.instance = STATIC.get(name)
        self.id = ""
        self.generation = -1
        self.held: Parts = NO_PARTS
        self.waiting: list[JoinReply] | None = None

    def step(self) -> None:
        """Whatever it would do next."""
        if self.waiting is not None:
            self._joined()
        elif self.generation < 0:
            self._join()
        else:
            who = JoinReply(member_id=self.id, generation=self.generation)
            code = self.scene.heartbeat(who, instance=self.instance)
            if code is ErrorCode.rebalance_in_progress:
                self._join()
            elif code is not ErrorCode.none:
                self.forget()

    def forget(self) -> None:
        self.id, self.generation, self.held, self.waiting = "", -1, NO_PARTS, None

    def _join(self) -> None:
        if self.eager:
            self.held = NO_PARTS
        name = "range" if self.eager else "cooperative-sticky"
        owned = by_name(self.scene.image, self.held)
        offered = protocols("range", name, owned=owned) if not self.eager else protocols("range")
        try:
            self.waiting = self.scene.start_join(
                self.id, protocols=offered, instance=self.instance, session_ms=30_000
            )
        except KafkaError:
            self.forget()

    def _joined(self) -> None:
        if not self.waiting:
            return  # others are waited for
        [reply], self.waiting = self.waiting, None
        if reply.error is ErrorCode.rebalance_in_progress:
            return
        if reply.error is not ErrorCode.none:
            self.forget()
            return
        self.id, self.generation = reply.member_id, reply.generation
        given = {}
        if reply.leader == self.id:
            given = dict.fromkeys((one.member_id for one in reply.members), b"")
            given[self.id] = write_assignment({"t": list(range(4))}, 1)
        try:
            synced = self.scene.start_sync(reply, given, instance=self.instance)
        except KafkaError as refusal:
            if refusal.code is not ErrorCode.rebalance_in_progress:
                self.forget()
            return
        if synced and synced[0].error is ErrorCode.none:
            topics = read_assignment(synced[0].assignment)
            assert topics is not None
            self.held = from_names(self.scene.image, topics)


class History(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scene = ConsumerScene()
        self.clients: dict[str, Client] = {}
        self.classics: dict[str, ClassicClient] = {}
        self.born = 0
        self.epoch = 0
        self.committed: int | None = None

    # What is

    @property
    def group(self) -> ConsumerGroup | None:
        group = self.scene.shard.groups.get(GROUP)
        return group if isinstance(group, ConsumerGroup) else None

    def is_member(self, name: str) -> bool:
        """Whether the coordinator takes it for a member as it is."""
        group, client = self.group, self.clients.get(name)
        if group is None or client is None or not client.epoch:
            return False
        member = group.members.get(client.id)
        return member is not None and member.epoch != -2

    # What members do

    @rule(name=st.sampled_from(NAMES), topics=st.sampled_from([("t",), ("t", "u"), ("u",)]))
    def comes(self, name: str, topics: tuple[str, ...]) -> None:
        if name in self.clients:
            return
        self.born += 1
        static = {"instance_id": STATIC[name]} if name in STATIC else {}
        client = Client(self.scene, f"{name}{self.born}", *topics, **static)
        if code_of(client.beat) is ErrorCode.none:
            self.clients[name] = client

    @rule(name=st.sampled_from(NAMES), pattern=st.sampled_from(["t|u", "u.*", ""]))
    def subscribes_by_pattern(self, name: str, pattern: str) -> None:
        if name in self.clients:
            self.clients[name].more["pattern"] = pattern

    @rule(name=st.sampled_from(NAMES), lost=st.booleans())
    def beats(self, name: str, lost: bool) -> None:
        client = self.clients.get(name)
        if client is None:
            return
        before = client.epoch
        try:
            reply = self.scene.beat(client.ask())
        except KafkaError as refusal:
            fenced = ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id
            if refusal.code in fenced:
                client.epoch, client.held, client.given = 0, NO_PARTS, NO_PARTS
            else:
                del self.clients[name]
            return
        assert reply.epoch >= before
        if lost:
            # It has said what it holds, and is believed, as in Kafka: what it was given before and
            # has not taken yet may be another's by now.
            client.given = client.held
        else:
            client.restart_session(reply)

    @rule(name=st.sampled_from(NAMES))
    def obeys(self, name: str) -> None:
        if name in self.clients:
            self.clients[name].obey()

    @rule(name=st.sampled_from(NAMES), for_good=st.booleans())
    def leaves(self, name: str, for_good: bool) -> None:
        client = self.clients.pop(name, None)
        if client is not None:
            code_of(client.leave, -1 if for_good or name not in STATIC else -2)

    @rule(name=st.sampled_from(NAMES + CLASSIC_NAMES))
    def is_killed(self, name: str) -> None:
        self.clients.pop(name, None)
        self.classics.pop(name, None)

    @rule(name=st.sampled_from(CLASSIC_NAMES), eager=st.booleans())
    def classic_comes(self, name: str, eager: bool) -> None:
        self.classics.setdefault(name, ClassicClient(self.scene, name, eager=eager))

    @rule(name=st.sampled_from(CLASSIC_NAMES))
    def classic_acts(self, name: str) -> None:
        if name in self.classics:
            self.classics[name].step()

    @rule(name=st.sampled_from(CLASSIC_NAMES))
    def classic_leaves(self, name: str) -> None:
        client = self.classics.pop(name, None)
        if client is not None and GROUP in self.scene.shard.groups:
            code_of(self.scene.leave, MemberIdentity(client.id, client.instance))

    @rule(name=st.sampled_from(NAMES), late=st.booleans(), value=st.integers(0, 99))
    def commits(self, name: str, late: bool, value: int) -> None:
        client, group = self.clients.get(name), self.group
        if client is None or group is None or not client.epoch:
            return
        known = group.members.get(client.id)
        epoch = client.epoch - late
        asked = {"member_id": client.id, "generation": epoch}
        code = code_of(self.scene.commit, offset(value), **asked)
        if self.scene.refuse is not None:
            assert code is not ErrorCode.none
            return
        assert (code is ErrorCode.none) == (known is not None and known.epoch == epoch)
        if code is ErrorCode.none:
            self.committed = value

    # What happens to them

    @rule(ms=st.sampled_from([1, 2_000, 31_000, 46_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        code_of(self.scene.pass_ms, ms)

    @rule(t=st.integers(1, 6), u=st.integers(0, 3))
    def topics_change(self, t: int, u: int) -> None:
        self.scene.topics(t=t, **({"u": u} if u else {}))

    @rule(code=st.sampled_from([ErrorCode.not_coordinator, None]))
    def the_log_fails_or_works(self, code: ErrorCode | None) -> None:
        self.scene.refuse = code

    @precondition(lambda self: self.scene.refuse is None)
    @rule()
    def the_broker_crashes(self) -> None:
        before = self.group
        for classic in self.classics.values():
            if classic.waiting is not None:
                classic.forget()
        self.scene = self.scene.after_a_crash()
        for client in self.clients.values():
            client.scene = self.scene
        for classic in self.classics.values():
            classic.scene = self.scene
        if before is not None:
            after = self.group
            assert after is not None
            assert _persisted(after) == _persisted(before)

    # What is promised

    @invariant()
    def no_partition_is_held_by_two_members(self) -> None:
        group = self.group
        if group is None:
            return
        held = [self.clients[name].held for name in self.clients if self.is_member(name)]
        held += [
            classic.held
            for classic in self.classics.values()
            if classic.id in group.members and classic.generation >= 0
        ]
        every = [part for share in held for part in share]
        assert len(every) == len(set(every)), held

    @invariant()
    def the_coordinator_gives_nothing_twice(self) -> None:
        group = self.group
        if group is None:
            return
        given: dict[TopicIdPartition, str] = {}
        for member in group.members.values():
            for part in member.standing.assigned | member.standing.revoking:
                assert part not in given, f"{part} for {given[part]} and {member.id}"
                given[part] = member.id
        assert given == group.owners
        assert set(group.static.values()) <= group.members.keys()
        assert group.target_epoch <= group.epoch
        assert all(member.epoch <= group.epoch for member in group.members.values())

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.scene.shard.groups.get(GROUP)
        if group is None or not group.members:
            self.epoch = 0
            return
        now = group.generation if isinstance(group, ClassicGroup) else group.epoch
        if isinstance(group, ClassicGroup) and group.phase is not GroupPhase.STABLE:
            return
        assert now >= self.epoch
        self.epoch = now

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        assert self.scene.committed() == self.committed

    def teardown(self) -> None:
        """Nobody comes or goes any more: those who are there come to rest."""
        self.scene.refuse = None
        for _ in range(60):
            if self._at_rest():
                return
            for client in self.clients.values():
                if code_of(client.step) is not ErrorCode.none:
                    client.epoch = 0
            for classic in self.classics.values():
                classic.step()
            self.no_partition_is_held_by_two_members()
            self.the_coordinator_gives_nothing_twice()
            self.scene.pass_ms(3_000)
        raise AssertionError("it does not come to rest")

    def _at_rest(self) -> bool:
        group = self.group
        if group is None:
            return not self.clients  # the classic protocol's own business
        alive = {client.id for client in self.clients.values()}
        alive |= {classic.id for classic in self.classics.values()}
        at_rest = GroupState.STABLE if alive else GroupState.EMPTY
        if group.members.keys() != alive or group.state is not at_rest:
            return False
        everybody: list[Any] = [*self.clients.values(), *self.classics.values()]
        held = {part for one in everybody for part in one.held}
        wanted = {
            TopicIdPartition(self.scene.image.topics[name].id, index)
            for name in group.subscribed() & self.scene.image.topics.keys()
            for index in self.scene.image.topics[name].partitions
        }
        return held == wanted and not (alive and group.topics_changed)


def _persisted(group: ConsumerGroup) -> tuple[Any, ...]:
    return (
        (group.epoch, group.target_epoch, group.members, group.static),
        (group.target, group.topics, group.patterns, group.owners),
    )


History.TestCase.settings = settings(max_examples=80, stateful_step_count=50, deadline=None)
TestHistory = pytest.mark.spec("GRP-44", "GRP-46", "GRP-47", "GRP-48")(History.TestCase)
