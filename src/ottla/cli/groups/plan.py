"""Where a group's offsets would be moved.

Pure but for `bounds`, which asks where partitions begin and end. An offset never leaves its
partition: what would is moved to the nearest end, as Kafka's own tool does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition


class OffsetMove(Enum):
    """How the new offset is found."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"
    SHIFT = "shift"
    TIME = "time"


class ResetTarget(NamedTuple):
    """A move, and its number: an offset, a distance, or a time in milliseconds."""

    move: OffsetMove
    number: int = 0


class Bounds(NamedTuple):
    """Where a partition begins and ends."""

    start: int
    end: int


def bounds(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
    wanted = list(partitions)
    starts = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST)).all()
    ends = admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST)).all()
    return {one: Bounds(starts[one].offset or 0, ends[one].offset or 0) for one in wanted}


def at_time(
    admin: Admin, partitions: Iterable[TopicPartition], ms: int
) -> dict[TopicPartition, int | None]:
    found = admin.list_offsets(dict.fromkeys(partitions, ms)).all()
    return {one: listed.offset for one, listed in found.items()}


def plan_offsets(
    wish: ResetTarget,
    room: Mapping[TopicPartition, Bounds],
    committed: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, int | None],
) -> dict[TopicPartition, int]:
    """The new offset of each partition in `room`."""
    return {
        one: min(max(_target(wish, one, bounds, committed, at_time), bounds.start), bounds.end)
        for one, bounds in sorted(room.items())
    }


def _target(
    wish: ResetTarget,
    partition: TopicPartition,
    bounds: Bounds,
    committed: Mapping[TopicPartition, int],
    at_time: Mapping[TopicPartition, int | None],
) -> int:
    match wish.move:
        case OffsetMove.EARLIEST:
            return bounds.start
        case OffsetMove.LATEST:
            return bounds.end
        case OffsetMove.OFFSET:
            return wish.number
        case OffsetMove.CURRENT:
            return committed.get(partition, bounds.end)
        case OffsetMove.SHIFT:
            if partition not in committed:
                raise UserError(f"--shift-by: the group has no committed offset for {partition}")
            return committed[partition] + wish.number
        case OffsetMove.TIME:
            found = at_time[partition]
            return bounds.end if found is None else found
