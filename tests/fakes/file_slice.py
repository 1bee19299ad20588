"""A stretch of a real file, warm or cold as the test says."""

from __future__ import annotations

import os
from pathlib import Path


class FakeSlice:
    """Owns a descriptor, as a slice of a log does; `cold` until it was warmed."""

    def __init__(self, path: Path, position: int, size: int, *, cold: bool = False) -> None:
        self.position = position
        self.size = size
        self.cold = cold
        self.warmed = 0
        self._fd = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        return self._fd

    def read(self) -> bytes:
        return os.pread(self._fd, self.size, self.position)

    def is_cached(self) -> bool:
        return not self.cold

    def warm(self) -> None:
        self.warmed += 1
        self.cold = False

    def __del__(self) -> None:
        os.close(self._fd)
