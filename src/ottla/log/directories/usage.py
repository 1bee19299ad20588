"""What the log directories hold, for whoever asks: sizes, copies in the making, room left.

Owns nothing; reads what is open. Never touches a partition's files.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.directories.directory import LogDirectory
from ottla.log.directories.log_directories import HostedLog, LogDirectories
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
    replicas: Iterable[ReplicaReport]
    """Looked at one by one; those that are there when the report is made."""


def describe(directories: LogDirectories) -> list[DirectoryReport]:
    return [_directory(directories, one) for one in directories.all]


def _directory(directories: LogDirectories, one: LogDirectory) -> DirectoryReport:
    if not one.online:
        return DirectoryReport(one.path, one.failure, UNKNOWN, UNKNOWN, [])
    try:
        total, usable = one.disk.total_bytes(one.path), one.disk.free_bytes(one.path)
    except OSError:
        total = usable = UNKNOWN
    return DirectoryReport(one.path, None, total, usable, _replicas(directories, one))


def _replicas(directories: LogDirectories, one: LogDirectory) -> Iterable[ReplicaReport]:
    held = list(directories.held.items())  # some may come and go while others are looked at
    futures = list(directories.futures.items())
    return chain(
        (_current(partition, kept) for partition, kept in held if kept.directory is one),
        (
            _future(directories, partition, copy)
            for partition, copy in futures
            if copy.directory is one
        ),
    )


def _current(partition: TopicPartition, held: HostedLog) -> ReplicaReport:
    lag = max(held.log.high_watermark - held.log.end_offset, 0)
    return ReplicaReport(partition, held.log.size, lag, is_future=False)


def _future(
    directories: LogDirectories, partition: TopicPartition, copy: HostedLog
) -> ReplicaReport:
    current = directories.get(partition) or copy.log  # its own directory may have failed
    lag = max(current.end_offset - copy.log.end_offset, 0)
    return ReplicaReport(partition, copy.log.size, lag, is_future=True)
