"""OffsetCommit and OffsetDelete: who may change a group's offsets.

Pure. A consumer that takes no part in a group (generation -1) may commit while the group has no
members; a member may commit for its own generation only, so that one that was thought dead cannot
undo what its successor has done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.classic.rebalance import hear
from ottla.coordinator.group.consumer import group as consumer_offsets
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import Committed, OffsetChanged, offset_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Outcome
from ottla.model.errors import ErrorCode, KafkaError


class CommitRequest(NamedTuple):
    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    offsets: Sequence[OffsetToCommit]
    retention_ms: int = -1
    """-1: as long as the broker keeps them."""
    transactional: bool = False
    unknown_group: ErrorCode = ErrorCode.illegal_generation
    """How this version of the API says that there is no such group."""
    knows_epochs: bool = True
    """Whether the client can tell a member's epoch from a generation."""


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


def check_commit(group: Group | None, ask: CommitRequest) -> None:
    """Raise the refusal a committer must hear."""
    if group is None:
        if ask.generation >= 0:
            raise KafkaError(ask.unknown_group)
        return  # it will be a group without members
    if isinstance(group, ConsumerGroup):
        consumer_offsets.check_commit(
            group,
            ask.member_id,
            ask.generation,
            transactional=ask.transactional,
            knows_epochs=ask.knows_epochs,
        )
        return
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    if ask.generation < 0 and group.phase is GroupPhase.EMPTY:
        return
    if ask.generation >= 0 or ask.member_id or ask.instance_id is not None:
        group.known(ask.member_id, ask.instance_id)
        if ask.generation != group.generation:
            raise KafkaError(ErrorCode.illegal_generation)
    elif not ask.transactional and group.phase is not GroupPhase.EMPTY:
        raise KafkaError(ErrorCode.unknown_member_id)
    if not ask.transactional and group.phase is GroupPhase.COMPLETING:
        raise KafkaError(ErrorCode.rebalance_in_progress)


def commit(
    group: Group | None, ask: CommitRequest, draft: Draft, limits: GroupSettings
) -> list[ErrorCode]:
    """Records for what may be stored; a code for each offset asked for."""
    check_commit(group, ask)
    if isinstance(group, ClassicGroup) and not ask.transactional:
        member = group.members.get(ask.member_id)
        if member is not None:
            hear(group, member, draft)
    expires_ms = -1 if ask.retention_ms < 0 else draft.now + ask.retention_ms
    codes = []
    for topic, partition, offset, leader_epoch, metadata in ask.offsets:
        if len(metadata.encode()) > limits.offset_metadata_max_bytes:
            codes.append(ErrorCode.offset_metadata_too_large)
            continue
        committed = Committed(offset, leader_epoch, metadata, draft.now, expires_ms)
        change = OffsetChanged(ask.group_id, topic, partition, committed)
        draft.records.append(offset_record(change))
        codes.append(ErrorCode.none)
    return codes


def delete_offsets(
    group: Group | None, offsets: Offsets, keys: Iterable[tuple[str, int]], now: int
) -> Outcome[dict[str, ErrorCode]]:
    """Tombstones for these; the refusal for each topic that its members still read."""
    if group is None:
        raise KafkaError(ErrorCode.group_id_not_found)
    draft = Draft(now)
    refused: dict[str, ErrorCode] = {}
    in_use = _in_use(group)
    for topic, partition in keys:
        if in_use is None or topic in in_use:
            refused[topic] = ErrorCode.group_subscribed_to_topic
        elif offsets.get(group.id, topic, partition) is not None:
            draft.records.append(offset_record(OffsetChanged(group.id, topic, partition, None)))
    return draft.outcome(refused)


def _in_use(group: Group) -> frozenset[str] | None:
    """The topics its members read; None when that is not known."""
    if isinstance(group, ConsumerGroup):
        return group.subscribed()
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.group_id_not_found)
    if group.phase is GroupPhase.EMPTY:
        return frozenset()
    if not group.is_consumer_group:
        raise KafkaError(ErrorCode.non_empty_group)
    return group.subscribed
