"""commit, commit_async, committed and group_metadata.

Owns what each of these calls does to the parts of a consumer. Both public classes call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ottla.client.consumer.core import Core
from ottla.client.consumer.group.classic_member import GroupMetadata
from ottla.client.offsets import OffsetAndMetadata, Offsets, checked_offsets
from ottla.client.retry import Deadline, retrying
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

OnCommit: TypeAlias = Callable[
    [Mapping[TopicPartition, OffsetAndMetadata], Exception | None], object
]
"""Called with the offsets, and the error if the commit failed."""


async def commit(core: Core, offsets: Offsets | None, timeout_ms: int) -> None:
    """Commit the current positions, or these offsets; wait for it, with retries."""
    await core.commits.commit(_offsets_to_commit(core, offsets), timeout_ms)
    await core.run_callbacks()


def commit_async(core: Core, offsets: Offsets | None, callback: OnCommit | None) -> None:
    """Commit without waiting or retries: a newer commit may have succeeded by then."""
    to_commit = _offsets_to_commit(core, offsets)

    def done(error: Exception | None) -> None:
        if callback is not None:
            core.pending_callbacks.append(lambda: callback(to_commit, error))
            core.wake_event.set()

    if to_commit:
        core.commits.start(to_commit, done, is_retried=False)
    else:
        done(None)


async def committed_offsets(
    core: Core, partitions: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The group's committed offsets; partitions without one are omitted."""
    group = GroupMetadata(_group_id(core))
    requested = list(partitions)

    # Error codes here are the group coordinator's; UNSTABLE_OFFSET_COMMIT of a partition ends with
    # the transaction that would change its offset.
    async def ask() -> dict[TopicPartition, OffsetAndMetadata]:
        return await core.lookup.committed_offsets(group, requested)

    return await retrying(core.cluster, ask, Deadline(core.clock, timeout_ms))


def group_metadata(core: Core) -> GroupMetadata:
    """What a producer needs to commit this group's offsets in a transaction."""
    group_id = _group_id(core)
    if core.subscriptions.is_automatic:
        return core.group.metadata
    return GroupMetadata(group_id, group_instance_id=core.config.group_instance_id)


def _offsets_to_commit(
    core: Core, offsets: Offsets | None
) -> dict[TopicPartition, OffsetAndMetadata]:
    _group_id(core)
    return core.consumed_positions() if offsets is None else checked_offsets(offsets)


def _group_id(core: Core) -> str:
    if core.config.group_id is None:
        raise UserError("commits need a group: create the consumer with group_id=")
    return core.config.group_id
