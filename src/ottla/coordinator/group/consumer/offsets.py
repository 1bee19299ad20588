"""Who may commit and fetch the offsets of a consumer group. Pure.

A member may, in its own epoch: one that was thought dead, or has not heard of the last share-out,
cannot undo what its successor has done. Tools may commit while the group has no members, and fetch
at any time.
"""

from __future__ import annotations

from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.consumer.member import Member
from ottla.model.errors import ErrorCode, KafkaError


def check_commit(
    group: ConsumerGroup, member_id: str, epoch: int, *, transactional: bool, knows_epochs: bool
) -> None:
    """Raise the refusal a committer must hear."""
    if epoch < 0 and not group.members:
        return
    member = group.known(member_id)
    if member.classic is None and not knows_epochs and not transactional:
        raise KafkaError(
            ErrorCode.unsupported_version,
            "OffsetCommit version 9 or above must be used by members using the consumer protocol",
        )
    # A transactional producer knows of generations only.
    _check_epoch(member, epoch, says_generation=transactional)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    if member_id or epoch >= 0:
        _check_epoch(group.known(member_id or ""), epoch)


def _check_epoch(member: Member, epoch: int, *, says_generation: bool = False) -> None:
    if epoch == member.epoch:
        return
    if says_generation or member.classic is not None:
        raise KafkaError(ErrorCode.illegal_generation)
    raise KafkaError(
        ErrorCode.stale_member_epoch,
        f"The received member epoch {epoch} does not match the expected member epoch "
        f"{member.epoch}.",
    )
