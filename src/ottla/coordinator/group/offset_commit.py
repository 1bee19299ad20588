"""OffsetCommit and OffsetDelete: checks who may change a group's offsets.

Pure. A consumer that is not a member of the group (generation -1) may commit while the group has no
members; a member may commit for its own generation only, so that a member that was removed cannot
overwrite the commits of its successor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.coordinator.group.classic.group import ClassicGroup
from ottla.coordinator.group.classic.member import GroupPhase
from ottla.coordinator.group.classic.rebalance import restart_session
from ottla.coordinator.group.consumer import group as consumer_offsets
from ottla.coordinator.group.consumer.group import ConsumerGroup, Group
from ottla.coordinator.group.draft import Draft
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import NEVER, Committed, OffsetChanged, offset_record
from ottla.coordinator.group.settings import GroupSettings
from ottla.coordinator.outcome import Outcome
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError

OFFSET_MOST_BYTES: Final = 40_000
"""The most memory that one offset can add besides its metadata: a group with a very long name."""


class CommitRequest(NamedTuple):
    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    offsets: Sequence[OffsetToCommit]
    retention_ms: int = -1
    """-1: the broker's retention."""
    transactional: bool = False
    unknown_group: ErrorCode = ErrorCode.illegal_generation
    """The error of this version of the API for a group that does not exist."""
    knows_epochs: bool = True
    """Whether this version of the API has member epochs."""


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


def check_commit(group: Group | None, request: CommitRequest) -> None:
    """KafkaError if the sender may not commit."""
    if group is None:
        if request.generation >= 0:
            raise KafkaError(request.unknown_group)
        return  # creates a group without members
    if isinstance(group, ConsumerGroup):
        consumer_offsets.check_commit(
            group,
            request.member_id,
            request.generation,
            transactional=request.transactional,
            knows_epochs=request.knows_epochs,
        )
        return
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.coordinator_not_available)
    if request.generation < 0 and group.phase is GroupPhase.EMPTY:
        return
    if request.generation >= 0 or request.member_id or request.instance_id is not None:
        group.require_member(request.member_id, request.instance_id)
        if request.generation != group.generation:
            raise KafkaError(ErrorCode.illegal_generation)
    elif not request.transactional and group.phase is not GroupPhase.EMPTY:
        raise KafkaError(ErrorCode.unknown_member_id)
    if not request.transactional and group.phase is GroupPhase.COMPLETING:
        raise KafkaError(ErrorCode.rebalance_in_progress)


def commit(
    group: Group | None,
    request: CommitRequest,
    draft: Draft,
    limits: GroupSettings,
    offsets: Offsets,
) -> list[ErrorCode]:
    """Adds the records to the draft; one error code for each offset of the request."""
    check_commit(group, request)
    if isinstance(group, ClassicGroup) and not request.transactional:
        member = group.members.get(request.member_id)
        if member is not None:
            restart_session(group, member, draft)
    keeps = request.retention_ms >= 0
    expires_ms = WallMs(draft.now + request.retention_ms) if keeps else NEVER
    codes = []
    left_bytes = _memory_left(request, limits, offsets)
    for topic, partition, offset, leader_epoch, metadata in request.offsets:
        if len(metadata.encode()) > limits.offset_metadata_max_bytes:
            codes.append(ErrorCode.offset_metadata_too_large)
            continue
        if left_bytes is not None:
            size = offsets.growth(request.group_id, topic, partition, metadata)
            if size > max(0, left_bytes):
                offsets.memory.log_refusal(request.group_id, limits.offsets_memory_bytes, draft.now)
                codes.append(ErrorCode.invalid_commit_offset_size)
                continue
            left_bytes -= size
        committed = Committed(offset, leader_epoch, metadata, draft.now, expires_ms)
        change = OffsetChanged(request.group_id, topic, partition, committed)
        draft.records.append(offset_record(change))
        codes.append(ErrorCode.none)
    return codes


def _memory_left(request: CommitRequest, limits: GroupSettings, offsets: Offsets) -> int | None:
    """The bytes left for offsets; None if that is enough for every possible request of this size.

    Only a request that comes near the limit has the growth of each of its offsets computed.
    """
    if limits.offsets_memory_bytes < 0:
        return None
    left_bytes = limits.offsets_memory_bytes - offsets.memory.total
    most_bytes = OFFSET_MOST_BYTES + limits.offset_metadata_max_bytes
    return None if left_bytes >= len(request.offsets) * most_bytes else left_bytes


def delete_offsets(
    group: Group | None, offsets: Offsets, keys: Iterable[tuple[str, int]], now: WallMs
) -> Outcome[dict[str, ErrorCode]]:
    """Tombstones for these offsets; an error for each topic that members are subscribed to."""
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
    """The topics its members are subscribed to; None if that is unknown."""
    if isinstance(group, ConsumerGroup):
        return group.subscribed()
    if group.phase is GroupPhase.DEAD:
        raise KafkaError(ErrorCode.group_id_not_found)
    if group.phase is GroupPhase.EMPTY:
        return frozenset()
    if not group.is_consumer_group:
        raise KafkaError(ErrorCode.non_empty_group)
    return group.subscribed
