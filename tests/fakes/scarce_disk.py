"""A disk on which files cannot always be opened: the process has no descriptor, or no memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from ottla.log.files import File, OutOfResources
from tests.fakes.forgetting_disk import ForgettingDisk


def nothing(_: Path) -> bool:
    return False


def everything(_: Path) -> bool:
    return True


class ScarceDisk(ForgettingDisk):
    """Refuses to open the paths that `refuses` accepts, and to rename them with `no_memory`."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self.refuses: Callable[[Path], bool] = nothing
        self.no_memory = False
        self.refused = 0

    def _open(self, path: Path) -> Path:
        if self.refuses(path):
            self.refused += 1
            raise OutOfResources(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return path

    def _change(self, path: Path) -> Path:
        if self.no_memory:
            self.refused += 1
            raise OutOfResources(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path))
        return path

    def open_append(self, path: Path) -> File:
        return super().open_append(self._open(path))

    def open_read(self, path: Path) -> File:
        return super().open_read(self._open(path))

    def read(self, path: Path) -> bytes:
        return super().read(self._open(path))

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        super().replace(self._open(path), content, sync=sync)

    def sync_dir(self, path: Path) -> None:
        super().sync_dir(self._open(path))

    def remove_tree(self, path: Path) -> None:
        super().remove_tree(self._open(path))

    def list(self, path: Path) -> list[str]:
        return super().list(self._open(path))

    def rename(self, old: Path, new: Path) -> None:
        super().rename(self._change(old), new)

    def mkdir(self, path: Path) -> None:
        super().mkdir(self._change(path))
