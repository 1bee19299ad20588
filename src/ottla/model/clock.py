"""Monotonic time for timeouts and wall time for timestamps; only this module reads them.

`MonoMs` never goes back: every timeout, deadline and rate is computed with it. `WallMs` is the time
of day, which may jump: it is only ever written into records, files and the metadata store, or
compared with what was written there. Both are `NewType`s, so that one cannot stand where the other
is meant; differences and durations are plain `int`s with the unit in their name. Timestamps of
records are plain `int`s, too: clients choose them, and they are computed with in every hot loop.
"""

from __future__ import annotations

import time
from typing import NewType, Protocol

MonoMs = NewType("MonoMs", int)
WallMs = NewType("WallMs", int)


class Clock(Protocol):
    def mono_ns(self) -> int: ...

    def mono_ms(self) -> MonoMs: ...

    def wall_ms(self) -> WallMs: ...


class SystemClock:
    """The machine's own clocks."""

    # Read several times a request, and for each record: no call of ours in between.
    wall_ns = staticmethod(time.time_ns)
    mono_ns = staticmethod(time.monotonic_ns)

    def mono_ms(self) -> MonoMs:
        return MonoMs(time.monotonic_ns() // 1_000_000)

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000)
