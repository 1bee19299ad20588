"""Where reading goes on: seek, pause, resume, and asking where offsets lie.

Owns what each of these calls does to the parts of a consumer. Both faces call them.
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
    """Let the next poll read from here."""
    place = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
    if place.offset < 0:
        raise UserError(f"seek({tp}, {place.offset}): expected an offset of 0 or more")
    core.subscriptions[tp].seek(place.offset, place.leader_epoch)
    _moved(core)


def seek_to(core: Core, partitions: Iterable[TopicPartition], timestamp: int) -> None:
    """To the start, the end, or a time; all assigned partitions if none is named."""
    chosen = list(partitions) or list(core.subscriptions.assigned)
    for part in [core.subscriptions[tp] for tp in chosen]:
        part.reset(timestamp)
    _moved(core)


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
            raise TimeoutError(f"the position of {tp} was not known in {timeout_ms} ms")
        try:
            async with asyncio.timeout(max(1, deadline.left_ms) / 1e3):
                await core.wake_event.wait()
        except TimeoutError:
            continue
    return core.unread().get(tp, part.offset)


def pause(core: Core, partitions: Iterable[TopicPartition]) -> None:
    """Deliver nothing of these; the member stays in its group as long as it polls."""
    for part in [core.subscriptions[tp] for tp in partitions]:
        part.paused = True
    core.fetcher.wake()  # nothing waits any more for these to be read


def resume(core: Core, partitions: Iterable[TopicPartition]) -> None:
    for part in [core.subscriptions[tp] for tp in partitions]:
        part.paused = False
        core.buffer.resume(part)
    _moved(core)


def paused(core: Core) -> frozenset[TopicPartition]:
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
    return await _ends(core, dict.fromkeys(partitions, EARLIEST), timeout_ms)


async def end_offsets(
    core: Core, partitions: Iterable[TopicPartition], timeout_ms: int
) -> dict[TopicPartition, int]:
    return await _ends(core, dict.fromkeys(partitions, LATEST), timeout_ms)


def checked_time(timestamp_ms: int) -> int:
    if timestamp_ms < 0:
        raise UserError(f"time {timestamp_ms}: expected milliseconds since 1970")
    return timestamp_ms


def rewind(core: Core, unread: Mapping[TopicPartition, int]) -> None:
    """Records that were taken and not seen are read again when their turn comes."""
    for tp, offset in unread.items():
        part = core.subscriptions.get(tp)
        if part is not None and part.has_position:
            part.seek(offset)
            core.fetcher.wake()


def lag(core: Core, tp: TopicPartition) -> int | None:
    """How far behind the end; None before the first fetch."""
    return core.subscriptions[tp].lag(core.config.isolation_level == "read_committed")


async def _ends(
    core: Core, wanted: Mapping[TopicPartition, int], timeout_ms: int
) -> dict[TopicPartition, int]:
    found = await core.lookup.offsets_at(wanted, timeout_ms)
    return {tp: place.offset for tp, place in found.items() if place is not None}


def _moved(core: Core) -> None:
    core.position_loop.wake()
    core.fetcher.wake()
    core.wake_event.set()
