"""How fast new connections may come. Pure: the time is an argument.

Owns: how many more may come now. A rate is kept as an average: what was not used in the last second
may be used at once, nothing older.
"""

from __future__ import annotations


class CreationRate:
    """A number of connections a second."""

    def __init__(self) -> None:
        self._left = 0.0
        self._rate = -1
        self._at_ms = 0

    def wait_ms(self, rate: int, now_ms: int) -> int:
        """How long the next one has to wait; 0: it may come."""
        if rate != self._rate:
            self._rate, self._left, self._at_ms = rate, float(max(rate, 1)), now_ms
        passed_ms, self._at_ms = now_ms - self._at_ms, now_ms
        self._left = min(self._left + passed_ms * rate / 1000, float(max(rate, 1)))
        if self._left >= 1:
            return 0
        return 1_000 if rate <= 0 else int((1 - self._left) * 1000 / rate) + 1

    def came(self) -> None:
        self._left -= 1
