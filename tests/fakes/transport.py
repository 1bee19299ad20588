"""A transport without a network: what was written, and what was asked of it."""

from __future__ import annotations

import asyncio
from typing import Any


class MemoryTransport(asyncio.Transport):
    """Takes bytes until told not to; tells its protocol nothing by itself."""

    def __init__(self, peername: tuple[str, int] = ("10.0.0.1", 4711)) -> None:
        super().__init__()
        self.written = bytearray()
        self.paused = False
        self.pauses = 0
        self.closed = False
        self.aborted = False
        self._peername = peername

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._peername if name == "peername" else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closing(), "nothing may be written to a closed transport"
        self.written += data

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True
        self.pauses += 1

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False

    def is_reading(self) -> bool:
        return not self.paused and not self.is_closing()

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True
