"""Waiting until partitions have moved, with what is left of them.

Owns: how progress is asked for and shown. Never: begins or cancels a move.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.cli.console import elapsed_seconds
from ottla.client.admin import Reassignment
from ottla.client.admin.sync import Admin
from ottla.model.ids import TopicPartition

CHECK_EVERY_S: Final = 0.5
SHOW_EVERY_S: Final = 2.0


class Progress(NamedTuple):
    """What is left of a set of moves."""

    partitions: int
    bytes_left: int


def left(admin: Admin, partitions: Iterable[TopicPartition]) -> Progress:
    """Partitions that still move, and the bytes that their new replicas still lack."""
    wanted = list(partitions)
    moving = admin.list_partition_reassignments(wanted)
    if not moving:
        return Progress(0, 0)
    return Progress(len(moving), _bytes_left(admin, moving))


def to_copy(progress: Progress) -> str:
    """What to add to a line, if anything is left to copy."""
    return f", {_megabytes(progress.bytes_left)} to copy" if progress.bytes_left else ""


def wait(admin: Admin, partitions: Iterable[TopicPartition], timeout_s: float) -> Progress:
    """Until the partitions have moved, or the time is over; a line every two seconds says how far.

    Lines go to standard error, so that the result stays alone on standard output.
    """
    pending = list(partitions)
    first = now = left(admin, pending)
    shown_s = 0.0
    for seconds in elapsed_seconds(timeout_s, CHECK_EVERY_S):
        now = left(admin, pending)
        if not now.partitions:
            break
        if seconds - shown_s >= SHOW_EVERY_S:
            shown_s = seconds
            print(_line(first, now, seconds, len(pending)), file=sys.stderr, flush=True)
    return now


def _line(first: Progress, now: Progress, seconds: float, total: int) -> str:
    done = total - now.partitions
    text = f"{done} of {total} partitions moved, {_megabytes(now.bytes_left)} left to copy"
    copied = first.bytes_left - now.bytes_left
    if copied > 0 and now.bytes_left:
        text += f", about {now.bytes_left * seconds / copied:.0f} s"
    return text


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _bytes_left(admin: Admin, moving: dict[TopicPartition, Reassignment]) -> int:
    directories = admin.describe_log_dirs(None, moving).succeeded
    sizes: dict[tuple[int, TopicPartition], int] = {}
    for broker, found in directories.items():
        for directory in found:
            for tp, replica in directory.replicas.items():
                sizes[(broker, tp)] = max(sizes.get((broker, tp), 0), replica.size_bytes)
    total = 0
    for tp, move in moving.items():
        whole = max((sizes.get((broker, tp), 0) for broker in move.replicas), default=0)
        total += sum(max(0, whole - sizes.get((broker, tp), 0)) for broker in move.adding)
    return total
