"""A stretch of a file that is sent as it is.

Owns the reference that keeps the descriptor open. Never copies bytes unless asked to `read`: the
network layer passes `fileno`, `position` and `size` to sendfile, and only a TLS or simulated
connection reads.
"""

from __future__ import annotations

import os
from typing import Final, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

# One probe for each stretch that the kernel would read ahead at once.
PROBE_STRIDE_BYTES: Final = 128 * 1024
WARM_BYTES: Final = 1 << 20
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", None)


class Source(Protocol):
    """An open file, or whatever stands for one under simulation."""

    def fileno(self) -> int: ...

    def pread(self, size: int, position: int) -> bytes: ...

    def sync(self) -> None: ...


class FileSlice:
    """`size` bytes of an open file from `position` on."""

    __slots__ = ("_source", "position", "size")

    def __init__(self, source: Source, position: int, size: int) -> None:
        self._source = source
        self.position = position
        self.size = size

    def fileno(self) -> int:
        return self._source.fileno()

    def read(self) -> bytes:
        """All of its bytes; fewer only if the file was cut short meanwhile."""
        parts: list[bytes] = []
        position, left = self.position, self.size
        while left and (part := self._source.pread(left, position)):
            parts.append(part)
            position += len(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def is_cached(self) -> bool:
        """Whether its pages are in memory, so that sending it cannot wait for the disk.

        Probes a byte here and there, so it may be wrong, which costs a wait and no more. True
        where the platform cannot tell.
        """
        if _NOWAIT is None:
            return True
        last = self.position + self.size - 1
        byte = bytearray(1)
        try:
            fd = self._source.fileno()
            for position in range(last, self.position - 1, -PROBE_STRIDE_BYTES):
                os.preadv(fd, [byte], position, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no descriptor, or a file system that does not know the flag
        return True

    def warm(self) -> None:
        """Wait until its pages have been in memory once; what cannot be read shows when sent."""
        position, end = self.position, self.position + self.size
        while position < end:
            part = self._source.pread(min(WARM_BYTES, end - position), position)
            if not part:
                return
            position += len(part)
