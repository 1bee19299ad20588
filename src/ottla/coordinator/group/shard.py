"""The groups of one partition of `__consumer_offsets`: replay, loading, requests, timers.

Owns the groups and their offsets. `replay` is the only writer of persisted state; decisions change
joining and waiting members directly, because nothing of that is stored until a generation is
complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final

from ottla.coordinator.group import offset_commit
from ottla.coordinator.group.classic import heartbeat, rebalance, sync
from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.classic.join import JoinDecision, JoinRequest
from ottla.coordinator.group.classic.member import (
    ClassicMember,
    GroupPhase,
    JoinAnswer,
    Protocol,
    SyncAnswer,
)
from ottla.coordinator.group.classic.sync import SyncRequest
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.consumer.protocol import ConsumerProtocol
from ottla.coordinator.group.descriptions import delete_group_records, is_empty
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.memory import MEMBER_BYTES, GroupMemory, OffsetMemory, size_of
from ottla.coordinator.group.metrics import Counts
from ottla.coordinator.group.offset_commit import CommitRequest
from ottla.coordinator.group.offsets import Offsets, expired_offsets
from ottla.coordinator.group.records import (
    GroupChanged,
    GroupDeleted,
    GroupTopicChange,
    OffsetChanged,
    TimerKey,
    decode,
    offset_record,
)
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Effect, Outcome
from ottla.metadata.image import Image
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset, ProducerId, TopicPartition

EXPIRE: Final = TimerKey("expire")
NAME_BYTES: Final = 2**15 - 1 - len("-00000000-0000-0000-0000-000000000000")
"""The longest client id or instance id: with a uuid it becomes a member id, stored in a record."""
OFFSETS_A_TURN: Final = 5_000
"""Offsets checked before the loop may run other tasks."""


class GroupShard:
    """All groups of one partition of `__consumer_offsets`."""

    def __init__(
        self,
        limits: Callable[[], GroupSettings],
        new_id: Callable[[], str],
        image: Callable[[], Image],
        counts: Counts | None = None,
        memory: tuple[GroupMemory, OffsetMemory] | None = None,
    ) -> None:
        self.counts = counts or Counts()
        self._memory, offset_memory = memory or (GroupMemory(), OffsetMemory())
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets(offset_memory)
        self.replay_many = self.offsets.bulk.take
        self.consumer = ConsumerProtocol(self.groups, limits, image, new_id, self._memory)
        self._limits = limits
        self._new_id = new_id
        self._loading = True
        self._unchecked: list[str] = []

    # Replay and loading

    @staticmethod
    def decode(key: bytes, value: bytes | None) -> GroupTopicChange | None:
        return decode(key, value)

    def replay(self, change: GroupTopicChange, offset: Offset, producer_id: ProducerId) -> None:
        self.offsets.bulk.forget()
        if not self._loading:
            self.counts.note(change)
        if isinstance(change, OffsetChanged):
            self.offsets.apply(change, offset, producer_id)
            if change.committed is not None and change.group not in self.groups:
                self.groups[change.group] = ClassicGroup(change.group)
        elif isinstance(change, GroupChanged):
            self._replay_group(change)
            self._update_memory(change.group)
        elif isinstance(change, GroupDeleted):
            if isinstance(self.groups.get(change.group), ClassicGroup):
                del self.groups[change.group]
            self._update_memory(change.group)
        else:
            self.consumer.replay(change)
            self._update_memory(change.group)

    def _update_memory(self, group_id: str) -> None:
        """Count the memory of a group whose members have changed."""
        group = self.groups.get(group_id)
        self._memory.note(group_id, 0 if group is None else group.memory_bytes)

    def _replay_group(self, change: GroupChanged) -> None:
        group = self.groups.get(change.group)
        if self._loading or not isinstance(group, ClassicGroup):
            self.groups[change.group] = group = group_from_record(change)
        group.assignment_bytes = sum(len(stored.assignment) for stored in change.members)
        if self._loading:
            return
        for stored in change.members:  # just written by this coordinator
            group.members[stored.id].assignment = stored.assignment

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        self.offsets.bulk.forget()
        self.offsets.end_transaction(producer_id, committed=committed)

    def on_loaded(self, now: WallMs) -> Outcome[None]:
        self._loading = False
        draft, limits = Draft(now), self._limits()
        for group_id in self.offsets.groups():
            if group_id not in self.groups:
                self.groups[group_id] = ClassicGroup(group_id)
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                self.consumer.on_loaded(group, draft)
                continue
            for member in group.members.values():
                rebalance.restart_session(group, member, draft)
            if len(group.members) > limits.max_size:
                why = f"{len(group.members)} members exceed group.max.size={limits.max_size}"
                rebalance.prepare(group, draft, limits, why)
        draft.set(EXPIRE, limits.offsets_retention_check_interval_ms)
        return draft.outcome(None)

    def on_unloaded(self) -> Sequence[Effect]:
        draft = Draft(WallMs(-1))
        self.offsets.release()
        for group in self.groups.values():
            self._memory.note(group.id, 0)
            if isinstance(group, ConsumerGroup):
                continue  # has no waiting requests
            for member in group.members.values():
                member.answer_waiting(ErrorCode.not_coordinator, draft)
            group.move(GroupPhase.DEAD, group.since_ms)
        self.groups.clear()
        return draft.effects

    # Members

    def join(
        self, group_id: str, request: JoinRequest, answer: JoinAnswer, now: WallMs
    ) -> Outcome[None]:
        limits = self._limits()
        lowest, highest = limits.min_session_timeout_ms, limits.max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            raise KafkaError(ErrorCode.invalid_session_timeout)
        if (
            max(len(name.encode()) for name in (request.client_id, request.instance_id or ""))
            > NAME_BYTES
        ):
            raise KafkaError(ErrorCode.invalid_request)
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and group.members:
            return self.consumer.join(group, request, answer, now)
        draft = Draft(now)
        if not isinstance(group, ClassicGroup):
            if request.member_id:
                raise KafkaError(ErrorCode.unknown_member_id)
            if group is not None:
                delete_group_records(group, draft)
            group = ClassicGroup(group_id, now)
        self._memory.check(group_id, _grows_by(group, request), limits.memory_bytes, now)
        JoinDecision(group, request, answer, draft, limits, self._new_id).decide()
        self.groups[group_id] = group
        self._update_memory(group_id)
        return draft.outcome(None)

    def sync(
        self, group_id: str, request: SyncRequest, answer: SyncAnswer, now: WallMs
    ) -> Outcome[None]:
        group, draft = self._group(group_id), Draft(now)
        if isinstance(group, ConsumerGroup):
            return self.consumer.sync(group, request, answer, now)
        sync.sync(group, request, answer, draft, self._limits())
        return draft.outcome(None)

    def heartbeat(
        self, group_id: str, identity: MemberIdentity, generation: int, now: WallMs
    ) -> Outcome[ErrorCode]:
        group, draft = self._group(group_id), Draft(now)
        if isinstance(group, ConsumerGroup):
            return self.consumer.classic_heartbeat(group, identity, generation, now)
        code = heartbeat.heartbeat(group, identity, generation, draft)
        return draft.outcome(code)

    def leave(
        self, group_id: str, leavers: Sequence[MemberIdentity], now: WallMs
    ) -> Outcome[list[ErrorCode]]:
        group, draft = self._group(group_id), Draft(now)
        if isinstance(group, ConsumerGroup):
            return self.consumer.leave(group, leavers, now)
        codes = heartbeat.leave(group, leavers, draft, self._limits())
        self._update_memory(group_id)
        return draft.outcome(codes)

    def _group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.unknown_member_id)
        return group

    def on_timer(self, key: Hashable, now: WallMs) -> Outcome[None]:
        assert isinstance(key, TimerKey)
        draft = Draft(now)
        group = self.groups.get(key.group)
        if key == EXPIRE:
            self._expire(draft)
        elif isinstance(group, ConsumerGroup):
            self.consumer.on_timer(group, key, draft)
        elif group is not None:
            self._on_group_timer(group, key, draft)
            self._update_memory(group.id)
        return draft.outcome(None)

    def _on_group_timer(self, group: ClassicGroup, key: TimerKey, draft: Draft) -> None:
        limits = self._limits()
        match key.kind:
            case rebalance.SESSION:
                heartbeat.session_timeout(group, key.member, draft, limits)
            case rebalance.JOIN:
                rebalance.join_timeout(group, draft, limits)
            case rebalance.SYNC:
                sync.sync_timeout(group, draft, limits)

    # Offsets

    def commit(self, request: CommitRequest, now: WallMs) -> Outcome[list[ErrorCode]]:
        draft = Draft(now)
        group = self.groups.get(request.group_id)
        limits, offsets = self._limits(), self.offsets
        return draft.outcome(offset_commit.commit(group, request, draft, limits, offsets))

    def forget_partitions(self, deleted: Collection[TopicPartition], now: WallMs) -> Outcome[None]:
        """Delete the offsets of deleted partitions."""
        draft = Draft(now)
        for group_id in self.offsets.groups():
            for topic, partition in deleted:
                if self.offsets.get(group_id, topic, partition) is not None:
                    change = OffsetChanged(group_id, topic, partition, None)
                    draft.records.append(offset_record(change))
        return draft.outcome(None)

    def _expire(self, draft: Draft) -> None:
        """Check some groups; a timer continues with the others until all are checked."""
        limits = self._limits()
        if not self._unchecked:
            self._unchecked = list(self.groups)
        checked = 0
        while self._unchecked and checked < OFFSETS_A_TURN:
            group = self.groups.get(self._unchecked.pop())
            if group is not None:
                checked += 1 + self._expire_group(group, draft, limits)
        pause_ms = 1 if self._unchecked else limits.offsets_retention_check_interval_ms
        draft.set(EXPIRE, pause_ms)

    def _expire_group(self, group: Group, draft: Draft, limits: GroupSettings) -> int:
        offset_count = sum(map(len, self.offsets.of(group.id).values()))
        removed = list(expired_offsets(group, self.offsets, draft.now, limits.offsets_retention_ms))
        for topic, partition in removed:
            change = OffsetChanged(group.id, topic, partition, None)
            draft.records.append(offset_record(change))
        self.counts.expired += len(removed)
        expects = isinstance(group, ClassicGroup) and group.pending
        is_over = is_empty(group) and not expects and offset_count == len(removed)
        if is_over and group.id not in self.offsets.pending_groups():
            delete_group_records(group, draft)
        return offset_count


def _grows_by(group: ClassicGroup, request: JoinRequest) -> int:
    """By how many bytes this join makes the group larger."""
    holder = group.static.get(request.instance_id or "", request.member_id)
    member = group.members.get(holder)
    if member is None:
        return MEMBER_BYTES + size_of(request.protocols)
    return size_of(request.protocols) - size_of(member.protocols)


def group_from_record(stored_group: GroupChanged) -> ClassicGroup:
    """The group of a stored record."""
    group = ClassicGroup(stored_group.group, stored_group.since_ms)
    group.protocol_type = stored_group.protocol_type or None
    for stored in stored_group.members:
        member = ClassicMember(
            stored.id,
            stored.instance_id,
            stored.client_id,
            stored.client_host,
            stored.rebalance_timeout_ms,
            stored.session_timeout_ms,
            (Protocol(stored_group.protocol or "", stored.subscription),),
            stored.assignment,
        )
        group.add(member, stored_group.protocol_type)
    group.generation = stored_group.generation
    group.protocol = stored_group.protocol
    group.leader = stored_group.leader
    group.phase = GroupPhase.STABLE if stored_group.members else GroupPhase.EMPTY
    group.note_subscriptions()
    return group
