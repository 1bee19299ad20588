"""A kernel that syncs when it is told to: what `SyncRing` is, over files of any disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from ottla.log.file_slice import Source


class FakeRing:
    def __init__(self, entries: int = 8) -> None:
        self._entries = entries
        self._readable, self._told = os.pipe()
        self._ended: list[tuple[int, int]] = []
        self.waiting: list[tuple[int, Source]] = []
        self.held = False
        """Nothing is synced before `run_all`."""
        self.refuses = False
        self.taken = 0

    def fileno(self) -> int:
        return self._readable

    @property
    def room(self) -> int:
        return self._entries - len(self.waiting)

    def submit(self, syncs: Sequence[tuple[int, Source]]) -> int:
        if self.refuses:
            return 0
        assert len(syncs) <= self.room
        self.taken += len(syncs)
        self.waiting += syncs
        if not self.held:
            self.run_all()
        return len(syncs)

    def run_all(self) -> None:
        waiting, self.waiting = self.waiting, []
        for number, source in waiting:
            try:
                source.sync()
                self._ended.append((number, 0))
            except OSError as error:
                self._ended.append((number, error.errno or errno.EIO))
        os.write(self._told, b"!")

    def done(self) -> list[tuple[int, int]]:
        os.read(self._readable, 1 << 10)
        ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        os.close(self._readable)
        os.close(self._told)
