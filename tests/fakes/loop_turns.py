"""How often the event loop has a turn while something else runs."""

from __future__ import annotations

import asyncio


class Turns:
    """Counts the turns of the loop while something else runs."""

    def __init__(self) -> None:
        self.count = 0
        self._counts = True

    def begin(self) -> None:
        asyncio.get_running_loop().call_soon(self._turn)

    def end(self) -> int:
        self._counts = False
        return self.count

    def _turn(self) -> None:
        if self._counts:
            self.count += 1
            asyncio.get_running_loop().call_soon(self._turn)
