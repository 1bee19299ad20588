"""A partition's directory, and which of its entries are not durable yet.

Owns where the partition lies on which disk, and which of its files the next flush must sync.
Never knows what the files mean.
"""

from __future__ import annotations

from pathlib import Path

from ottla.log.file_slice import Source
from ottla.log.files import Disk


class PartitionDirectory:
    """One directory, and the files in it that were written but not synced."""

    __slots__ = ("_changed", "_unsynced", "disk", "path")

    def __init__(self, disk: Disk, path: Path) -> None:
        self.disk = disk
        self.path = path
        self._unsynced: tuple[Path, ...] = ()
        self._changed = False

    def names(self) -> list[str]:
        return self.disk.list(self.path)

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, in the page cache for now."""
        self.disk.replace(self.path / name, content, sync=False)
        self.sync_later(self.path / name)

    def sync_later(self, *paths: Path) -> None:
        """These were written: the next flush makes them durable, if they are still there."""
        self._unsynced += paths
        self._changed = True

    def changed(self) -> None:
        """Files were created or removed: the next flush syncs the directory."""
        self._changed = True

    @property
    def unsynced(self) -> int:
        """Files that were written and not synced."""
        return len(self._unsynced)

    def begin_sync(self, most: int) -> tuple[list[Source], list[Path]]:
        """Open files, at most so many, and directories: the caller must sync them.

        What is left is for the next flush. If it fails, all of it is.
        """
        if not self._changed:  # as it is of nearly every flush
            return [], []
        sources = []
        for path in self._unsynced[:most]:
            if self.disk.exists(path):
                file = self.disk.open_read(path)
                sources.append(file.source())
                file.close()
        # The parent too: it has the entry of a directory that may be new.
        directories = [self.path, self.path.parent]
        self._unsynced = self._unsynced[most:]
        self._changed = bool(self._unsynced)
        return sources, directories

    def rename(self, path: Path) -> None:
        """Move all of it; nothing in it may be open for writing. The caller syncs the parent."""
        self.disk.rename(self.path, path)
        self._unsynced = tuple(path / unsynced.name for unsynced in self._unsynced)
        self.path = path
