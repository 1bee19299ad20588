"""seek, pause, resume, position and offset queries.

Owns what each of these calls does to the parts of a consumer. Both public classes call them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from ottla.client.consumer.core import Core
from ottla.client.consumer.position.reset_policy import EARLIEST, LATEST
from ottla.client.offsets import OffsetAndMetadata, OffsetAndTimestamp
from ottla.client.retry import Deadline
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


def seek(core: Core, tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
    """Make the next poll read from this offset."""
    target = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
    if target.offset < 0:
        raise UserError(f"seek({tp}, {target.offset}): expected an offset of 0 or more")
    core.subscriptions[tp].seek(target.offset, target.leader_epoch)
    _wake_loops(core)


def seek_to(core: Core, partitions: Iterable[TopicPartition], timestamp: int) -> None:
    """Seek to the start, the end, or a timestamp; all assigned partitions if none is named."""
    chosen = list(partitions) or list(core.subscriptions.assigned)
    for part in [core.subscriptions[tp] for tp in chosen]:
        part.reset(timestamp)
    _wake_loops(core)


async def position(core: Core, tp: TopicPartition, timeout_ms: int) -> int:
    """The offset of the next record; waits until there is one."""
    part = core.subscriptions[tp]
    deadline = Deadline(core.clock, timeout_ms)
    while not part.has_position:
        core.wake_event.clear()
        core.position_loop.wake()
        if part.fault is not None and core.subscriptions.fault is part.fault:
            raise part.fault
        if deadline.is_over:
            raise TimeoutError(f"no position of {tp} within {timeout_ms} ms")
        try:
            async with asyncio.timeout(max(1, deadline.left_ms) / 1e3):
                await core.wake_event.wait()
        except TimeoutError:
            continue
    return core.unread().get(tp, part.offset)


def pause(core: Core, partitions: Iterable[TopicPartition]) -> None:
    """Return no records of these; the member stays in its group as long as it polls."""
    for part in [core.subscriptions[tp] for tp in partitions]:
        part.paused = True
    core.fetcher.wake()  # fetches no longer wait for these to be read


def resume(core: Core, partitions: Iterable[TopicPartition]) -> None:
    for part in [core.subscriptions[tp] for tp in partitions]:
        part.paused = False
        core.buffer.resume(part)
    _wake_loops(core)


def paused_partitions(core: Core) -> frozenset[TopicPartition]:
    return frozenset(part.tp for part in core.subscriptions if part.paused)


async def offsets_for_times(
    core: Core, times: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The first record at or after each time; None where there is none."""
    for time_ms in times.values():
        checked_time(time_ms)
    return await core.lookup.offsets_at(times, timeout_ms)


async def beginning_offsets(
    core: Core, partitions: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, int]:
    return await _list_offsets(core, dict.fromkeys(partitions, EARLIEST), timeout_ms)


async def end_offsets(
    core: Core, partitions: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, int]:
    return await _list_offsets(core, dict.fromkeys(partitions, LATEST), timeout_ms)


def checked_time(timestamp_ms: int) -> int:
    if timestamp_ms < 0:
        raise UserError(f"timestamp {timestamp_ms}: expected milliseconds since 1970")
    return timestamp_ms


def rewind(core: Core, unread: Mapping[TopicPartition, int]) -> None:
    """Move positions back to records that were taken but not seen."""
    for tp, offset in unread.items():
        part = core.subscriptions.get(tp)
        if part is not None and part.has_position:
            part.seek(offset)
            core.fetcher.wake()


def lag(core: Core, tp: TopicPartition) -> int | None:
    """How far behind the end; None before the first fetch."""
    return core.subscriptions[tp].lag(core.config.isolation_level == "read_committed")


async def _list_offsets(
    core: Core, timestamps: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, int]:
    offsets = await core.lookup.offsets_at(timestamps, timeout_ms)
    return {tp: offset.offset for tp, offset in offsets.items() if offset is not None}


def _wake_loops(core: Core) -> None:
    core.position_loop.wake()
    core.fetcher.wake()
    core.wake_event.set()
