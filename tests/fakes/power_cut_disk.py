"""A disk that stops the machine before a chosen change."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.forgetting_disk import ForgettingDisk


class PowerCut(BaseException):
    """The machine stops here: nothing may catch it."""


class FusedDisk(ForgettingDisk):
    """Stops the machine before the change after `fuse` others."""

    def __init__(self) -> None:
        super().__init__()
        self.fuse: int | None = None

    def _burn(self) -> None:
        if self.fuse == 0:
            raise PowerCut
        if self.fuse is not None:
            self.fuse -= 1

    def rename(self, old: Path, new: Path) -> None:
        self._burn()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._burn()
        super().remove(path)

    def replace(self, path: Path, content: bytes, *, sync: bool = True) -> None:
        self._burn()
        super().replace(path, content, sync=sync)

    def sync_dir(self, path: Path) -> None:
        self._burn()
        super().sync_dir(path)
