"""Committing, and asking what is committed.

Owns what each of these calls does to the parts of a consumer. Both faces call them.
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
"""Called with what was to be committed, and what went wrong."""


async def commit(core: Core, offsets: Offsets | None, timeout_ms: int) -> None:
    """Commit what the user has, or these offsets; wait for it, and try again if that may help."""
    await core.commits.commit(_wanted(core, offsets), timeout_ms)
    await core.run_callbacks()


def commit_async(core: Core, offsets: Offsets | None, callback: OnCommit | None) -> None:
    """Commit and do not wait; not tried again, for a newer commit may have succeeded by then."""
    wanted = _wanted(core, offsets)

    def done(error: Exception | None) -> None:
        if callback is not None:
            core.pending_callbacks.append(lambda: callback(wanted, error))
            core.wake_event.set()

    if wanted:
        core.commits.start(wanted, done, is_retried=False)
    else:
        done(None)


async def committed(
    core: Core, partitions: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What the group has committed; partitions without are left out."""
    group = GroupMetadata(_group_id(core))
    wanted = list(partitions)

    # Codes here are the group coordinator's; UNSTABLE_OFFSET_COMMIT of a partition passes when the
    # transaction that would change its offset ends.
    async def ask() -> dict[TopicPartition, OffsetAndMetadata]:
        return await core.lookup.committed(group, wanted)

    return await retrying(core.cluster, ask, Deadline(core.clock, timeout_ms))


def group_metadata(core: Core) -> GroupMetadata:
    """What a producer needs to commit this group's offsets in a transaction."""
    group_id = _group_id(core)
    if core.subscriptions.is_automatic:
        return core.group.metadata
    return GroupMetadata(group_id, group_instance_id=core.config.group_instance_id)


def _wanted(core: Core, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
    _group_id(core)
    return core.consumed() if offsets is None else checked_offsets(offsets)


def _group_id(core: Core) -> str:
    if core.config.group_id is None:
        raise UserError("committing needs a group: make the consumer with group_id=")
    return core.config.group_id
