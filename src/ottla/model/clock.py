"""Monotonic time for timeouts and wall time for timestamps; only this module reads them.

`mono` time never goes back and is used for every timeout. `wall` time may jump and is only ever
written into records and files or compared with what was written there.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def mono_ns(self) -> int: ...

    def mono_ms(self) -> int: ...

    def wall_ms(self) -> int: ...


class SystemClock:
    """The machine's own clocks."""

    wall_ns = staticmethod(time.time_ns)
    """For stamping a record in every call: no call of ours in between."""

    def mono_ns(self) -> int:
        return time.monotonic_ns()

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
