"""Truncating a log, split so that only the syncs happen off the loop.

A truncation is durable before anything is appended, or truncated bytes could come back. It is done
in steps: each changes the log (loop) and yields a sync, which the caller runs on any thread before
it takes the next step. Between steps the log is whole and shorter; nobody may append to it.

Callers that keep the recovery point in a checkpoint lower it there before the next append.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.log import Log

Sync: TypeAlias = Callable[[], None]


def truncation_steps(log: Log, offset: Offset) -> Iterator[Sync]:
    """Remove everything from `offset` on, later segments first: a crash leaves no gap."""
    log.epochs.truncate_from_end(offset)
    if offset >= log.end_offset:
        return
    if offset < log.segments.first.base_offset:
        yield from restart_steps(log, offset)
        return
    for end, sync in log.segments.truncation_steps(offset):
        log.end_at(end)
        yield sync


def restart_steps(log: Log, offset: Offset) -> Iterator[Sync]:
    """Remove everything and start at `offset`, which may be any offset."""
    log.restart_at(offset)
    yield partial(log.disk.sync_dir, log.dir)
