"""A limit on new connections per second. Pure: the time is an argument.

Owns: how many more are allowed now. Connections that were not used in the last second may come at
once; nothing older is saved up.
"""

from __future__ import annotations


class CreationRate:
    """A number of connections a second."""

    def __init__(self) -> None:
        self._available = 0.0
        self._rate = -1
        self._updated_ms = 0

    def wait_ms(self, rate: int, now_ms: int) -> int:
        """How long the next connection has to wait; 0: it is allowed."""
        if rate != self._rate:
            self._rate, self._available, self._updated_ms = rate, float(max(rate, 1)), now_ms
        passed_ms, self._updated_ms = now_ms - self._updated_ms, now_ms
        self._available = min(self._available + passed_ms * rate / 1000, float(max(rate, 1)))
        if self._available >= 1:
            return 0
        return 1_000 if rate <= 0 else int((1 - self._available) * 1000 / rate) + 1

    def count_one(self) -> None:
        self._available -= 1
