"""What the log directories hold, for whoever asks: sizes, copies in the making, room left.

Owns nothing; reads what is open. Never touches a partition's files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.directories import LogDirectories
from ottla.log.directory import Directory
from ottla.model.ids import Offset, TopicPartition

UNKNOWN: Final = -1


class ReplicaReport(NamedTuple):
    """One partition in one directory. `offset_lag` is what a copy, or a follower, still lacks."""

    partition: TopicPartition
    size: int
    offset_lag: Offset
    is_future: bool


class DirectoryReport(NamedTuple):
    path: Path
    failure: str | None
    total_bytes: int
    usable_bytes: int
    replicas: list[ReplicaReport]


def describe(directories: LogDirectories) -> list[DirectoryReport]:
    return [_directory(directories, one) for one in directories.all]


def _directory(directories: LogDirectories, one: Directory) -> DirectoryReport:
    if not one.online:
        return DirectoryReport(one.path, one.failure, UNKNOWN, UNKNOWN, [])
    try:
        total, usable = one.disk.total_bytes(one.path), one.disk.free_bytes(one.path)
    except OSError:
        total = usable = UNKNOWN
    return DirectoryReport(one.path, None, total, usable, list(_replicas(directories, one)))


def _replicas(directories: LogDirectories, one: Directory) -> Iterator[ReplicaReport]:
    for partition, held in directories.held.items():
        if held.directory is one:
            lag = max(held.log.high_watermark - held.log.end_offset, 0)
            yield ReplicaReport(partition, held.log.size, lag, is_future=False)
    for partition, future in directories.futures.items():
        if future.directory is one:
            current = directories.get(partition) or future.log  # its own directory may have failed
            lag = max(current.end_offset - future.log.end_offset, 0)
            yield ReplicaReport(partition, future.log.size, lag, is_future=True)
