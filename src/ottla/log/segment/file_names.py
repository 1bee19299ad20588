"""The files of one segment: their names, and renaming or removing them together.

Owns the suffixes, the directory a segment lies in and its current suffix. Never reads a file. The
`.log` is always renamed and removed last: it decides whether the segment exists.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ottla.log.files import Disk, File
from ottla.log.segment.indexes import INDEX, TIME_INDEX
from ottla.model.ids import Offset

LOG: Final = ".log"
TXN_INDEX: Final = ".txnindex"
SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)


def file_name(base_offset: Offset, kind: str) -> str:
    """The name all files of a segment share: its base offset in twenty digits."""
    return f"{base_offset:020d}{kind}"


class SegmentFiles:
    """Where the files of one segment lie, and under which names."""

    __slots__ = ("_base_offset", "dir", "disk", "suffix")

    def __init__(self, disk: Disk, dir: Path, base_offset: Offset, suffix: str) -> None:
        self.disk = disk
        self.dir = dir
        self.suffix = suffix  # after the kind: `.cleaned`, `.swap`, `.deleted` or nothing
        self._base_offset = base_offset

    def path(self, kind: str = LOG) -> Path:
        return self.dir / (file_name(self._base_offset, kind) + self.suffix)

    def open_log(self) -> File:
        return self.disk.open_append(self.path())

    def modified_ms(self) -> int:
        return self.disk.mtime_ms(self.path())

    def rename(self, suffix: str) -> None:
        """Give all files another suffix. None of them may be open for writing."""
        for kind in reversed(SUFFIXES):
            old = self.path(kind)
            if self.disk.exists(old):
                self.disk.rename(old, self.dir / (file_name(self._base_offset, kind) + suffix))
        self.suffix = suffix

    def delete(self, *kinds: str) -> None:
        for kind in reversed(kinds):
            self.disk.remove(self.path(kind))
