"""The run queue: connections with requests that have arrived and are not started.

Owns: two queues of connections, control plane and data plane, and their bounds.
Never: contains a request; those stay, as bytes, in the buffer of their connection.

Most requests never come here: while nobody waits, a connection is answered in the very call that
read it. A connection that has more than a turn's worth of requests, or becomes readable while
others wait, goes to the end of the queue. The control plane's queue is emptied before every turn
of the data plane's. A queue that is longer than its bound tells the newcomer to stop reading until
it has had its turn, which is how back-pressure reaches the sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from ottla.model.clock import Clock
from ottla.net.limits import CONTROL_QUEUE_LIMIT

ROUND_NS: Final = 2_000_000
"""How long queued turns may take before sockets and timers are looked at again."""

INLINE_TURNS: Final = 64
"""How many turns may be taken without queueing before the next has to: bounds one loop pass."""


class Runnable(Protocol):
    """A connection, as far as the queue knows."""

    def turn(self) -> None: ...


class RunQueue:
    """First come, first served; the control plane before all others."""

    def __init__(self, clock: Clock, soon: Callable[[Callable[[], None]], object]) -> None:
        self.limit = 0  # queued.max.requests
        self._clock = clock
        self._soon = soon
        self._data: deque[Runnable] = deque()
        self._control: deque[Runnable] = deque()
        self._inline = 0
        self._scheduled = False

    @property
    def data_size(self) -> int:
        return len(self._data)

    @property
    def control_size(self) -> int:
        return len(self._control)

    def may_run_now(self, *, control: bool) -> bool:
        """Nobody waits before it: it may take its turn at once, without queueing."""
        if control:
            return not self._control
        self._inline += 1
        return not self._data and not self._control and self._inline <= INLINE_TURNS

    def enqueue(self, turn: Runnable, *, control: bool) -> bool:
        """Wait for a turn. False: the queue is over its bound, read no more until it comes."""
        queue = self._control if control else self._data
        queue.append(turn)
        if not self._scheduled:
            self._scheduled = True
            self._soon(self._round)
        return len(queue) <= (CONTROL_QUEUE_LIMIT if control else self.limit)

    def _round(self) -> None:
        control, data = self._control, self._data
        self._inline = 0
        self._scheduled = True  # those who enqueue again during the round need not ask for another
        ends_ns = self._clock.mono_ns() + ROUND_NS
        try:
            for _ in range(len(control) + len(data)):
                (control or data).popleft().turn()
                if self._clock.mono_ns() >= ends_ns:
                    break
        finally:
            self._scheduled = bool(control or data)
            if self._scheduled:
                self._soon(self._round)
