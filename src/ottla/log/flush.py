"""Making a log durable, split so that only the waiting happens off the loop.

`begin_flush` (loop) notes what there is to sync and holds it open; `Flush.run` (any thread) does
nothing but sync; `Log.flush_done` (loop) raises the recovery point. Appends made meanwhile
are not part of this flush.

A truncation is durable before anything is appended, or truncated bytes could come back. It is done
in steps: each changes the log (loop) and yields a sync, which the caller runs on any thread before
it takes the next step. Between steps the log is whole and shorter; nobody may append to it. Callers
that keep the recovery point in a checkpoint lower it there before the next append.

The active segment's indexes are not synced: recovery derives them again, since the segment that
holds the recovery point is always walked. A closed segment's are, once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.log.file_slice import Source
from ottla.log.files import Disk, OutOfResources
from ottla.log.leader_epochs import FILE_NAME
from ottla.model.ids import Offset

if TYPE_CHECKING:
    from ottla.log.log import Log


Sync: TypeAlias = Callable[[], None]

FILES_AT_ONCE: Final = 32
"""Of each kind, data and derived, that one flush holds open. What is more takes another flush."""


class Flush:
    """What a log had to make durable when this was begun: all of it, if it is `whole`."""

    __slots__ = ("_directories", "_disk", "_sources", "generation", "upto", "whole")

    def __init__(
        self,
        disk: Disk,
        sources: list[Source],
        directories: list[Path],
        upto: Offset,
        generation: int,
        *,
        whole: bool = True,
    ) -> None:
        self._disk = disk
        self._sources = sources
        self._directories = directories
        self.upto = upto
        self.generation = generation
        self.whole = whole

    @property
    def files(self) -> int:
        """How many it holds open."""
        return len(self._sources)

    @property
    def lone(self) -> Source | None:
        """The one open file that has to be synced, where that is all: nearly always."""
        return self._sources[0] if len(self._sources) == 1 and not self._directories else None

    def run(self) -> None:
        """Sync data first, then what is derived from it, then the directory."""
        for source in self._sources:
            source.sync()
        for directory in self._directories:
            try:
                self._disk.sync_dir(directory)
            except FileNotFoundError:
                continue  # the partition was renamed or removed meanwhile


def removed_file_error(log: Log) -> OSError | None:
    """The error of a log whose active segment file was removed while it was open.

    The kernel accepts writes to such a file, and syncs it, without an error.
    """
    active = log.segments.active
    if not active.unlinked or log.disk.exists(active.files.path()):
        return None  # the latter on a file system that does not count links
    reason = "the file was removed while the broker was running"
    return FileNotFoundError(errno.ENOENT, reason, str(active.files.path()))


def begin_flush(log: Log) -> Flush:
    """What must be synced now; `run` it on any thread, then `Log.flush_done`.

    Where segments rolled faster than they were flushed it is only the beginning of that.
    """
    content = log.epochs.to_save(log.end_offset)
    if content is not None:
        _write_epochs(log, content)
    data: list[Source] = []
    active, upto = log.segments.active, log.end_offset
    if log.directory.unsynced > FILES_AT_ONCE:  # they come first: the recovery point waits for them
        derived, directories = log.directory.begin_sync(FILES_AT_ONCE)
        upto, generation = log.recovery_point, log.segments.generation
        return Flush(log.disk, derived, directories, upto, generation, whole=False)
    if log.recovery_point >= active.base_offset:  # nearly always; hot: benchmarks/transactions.py
        if log.recovery_point < log.end_offset and active.size:
            data = [active.file().source()]
    elif log.recovery_point < log.end_offset:
        dirty = log.segments.starting_from(log.recovery_point)
        if len(dirty) > FILES_AT_ONCE:
            upto = dirty[FILES_AT_ONCE].base_offset
        data = [segment.file().source() for segment in dirty[:FILES_AT_ONCE] if segment.size]
    derived, directories = log.directory.begin_sync(FILES_AT_ONCE)
    whole = upto == log.end_offset
    return Flush(log.disk, data + derived, directories, upto, log.segments.generation, whole=whole)


def _write_epochs(log: Log, content: bytes) -> None:
    try:
        log.directory.write(FILE_NAME, content)
    except OutOfResources:
        log.epochs.not_saved()
        raise


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
