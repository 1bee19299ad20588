"""An event loop on virtual time, with processes that can die.

Owns time, which jumps to the next timer when nothing is ready, and whatever would leave the
process: threads become pauses, sockets a memory network. Never reads a clock, opens a socket or
starts a thread. Callbacks run in the order they were asked for, as asyncio promises; chance comes
in only through how long things take.

A `Process` is a context variable, which tasks, timers and callbacks inherit: `kill` drops all that
one of them still had to do, without running a line of it, as the death of a real process does.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import logging
import math
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import partial
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from ottla.model.clock import MonoMs, WallMs
from tests.sim.trace import Trace

Result = TypeVar("Result")
Args = TypeVarTuple("Args")

START_NS: Final = 1_000_000_000_000
COLLECTIONS: Final = 4
"""Coroutines that will not end when they are told to are freed only later, one inside the other."""
TICK_S: Final = 1e-9
"""Timers so close together are due at the same time."""
STUCK_TURNS: Final = 1_000_000
"""Turns without a tick of the clock after which something runs in circles."""
TIMERS_MIN: Final = 100
"""So few are kept although most of them are cancelled."""


class Process:
    """Whoever runs under this name shares one life, on one host."""

    def __init__(self, name: str, host: str = "") -> None:
        self.name = name
        self.host = host or name
        self.alive = True
        self.paused = False
        self.tasks: list[asyncio.Task[Any]] = []
        self.held_back: list[asyncio.Handle] = []
        """Callbacks and timers that came due, or were asked for, while it was paused."""

    def pending(self) -> list[asyncio.Task[Any]]:
        self.tasks = [task for task in self.tasks if not task.done()]
        return self.tasks

    @contextmanager
    def running(self) -> Iterator[None]:
        """What is started in here belongs to this process."""
        token = PROCESS.set(self)
        try:
            yield
        finally:
            PROCESS.reset(token)


PROCESS: ContextVar[Process] = ContextVar("process")


class NothingLeft(RuntimeError):
    """Everybody waits, and nobody for a timer: this would hang for ever."""


class Due(float):
    """When a timer is due, with the timer: a heap compares floats much faster than timers."""

    __slots__ = ("timer",)
    timer: asyncio.TimerHandle


class NumberedTask(asyncio.Task[Any]):
    """A task group cancels its tasks in the order of a set: by their numbers, not by addresses."""

    def __init__(self, number: int, work: Coroutine[Any, Any, Any], **how: Any) -> None:
        self.number = number
        super().__init__(work, **how)

    def __hash__(self) -> int:
        return self.number


class SimLoop(asyncio.BaseEventLoop):
    """Runs one simulation, whose every chance comes from `dice`."""

    def __init__(self, dice: Random, trace: Trace) -> None:
        super().__init__()
        self._scheduled: list[Due] = []
        self._ready: deque[asyncio.Handle] = deque()
        self._timer_cancelled_count = 0
        self._turns = 0
        """Since the last tick of the clock."""
        self.dice = dice
        self.trace = trace
        self.now_ns = START_NS
        self.slowness = 1.0
        """How much longer than usual what is done off the loop takes."""
        self.slow_hosts: dict[str, float] = {}
        """The same for single hosts."""
        self.unhandled: list[str] = []
        self._task_count = 0
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]
        self.set_exception_handler(self._not_handled)

    # Time

    def time(self) -> float:
        return self.now_ns / 1e9

    def _run_once(self) -> None:
        """One turn of the loop, as asyncio's; instead of waiting, it moves the time."""
        scheduled, ready = self._without_cancelled(), self._ready
        self._turns += 1
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not scheduled:
                raise NothingLeft("no event is left: the simulation would wait for ever")
            if scheduled[0] > self.time():
                self._jump(scheduled[0])
        assert self._turns < STUCK_TURNS, "the simulation runs in circles"
        end = self.time() + TICK_S
        while scheduled and scheduled[0] < end:
            timer = heapq.heappop(scheduled).timer
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        for _ in range(len(ready)):  # what they ask for is for the next turn
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _without_cancelled(self) -> list[Due]:
        """All timers if few are cancelled; the first one is not."""
        scheduled = self._scheduled
        if len(scheduled) > TIMERS_MIN and self._timer_cancelled_count * 2 > len(scheduled):
            for due in scheduled:
                if due.timer._cancelled:
                    due.timer._scheduled = False  # type: ignore[attr-defined]
            scheduled = self._scheduled = [due for due in scheduled if not due.timer._cancelled]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and scheduled[0].timer._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled).timer._scheduled = False  # type: ignore[attr-defined]
        return scheduled

    def _jump(self, when: float) -> None:
        """To the next timer, after so many turns without one."""
        self.now_ns = max(self.now_ns, math.ceil(when * 1e9))
        if self.trace.is_used:
            self.trace.note(self.now_ns, self._turns)
        self._turns = 0

    # Processes

    def call_soon(
        self,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        process = PROCESS.get(None) if context is None else context.get(PROCESS)
        if process is None or (process.alive and not process.paused):
            self._ready.append(handle)
        elif process.alive:
            process.held_back.append(handle)
        else:  # asked for by the dead
            handle._cancelled = True
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        process = PROCESS.get(None) if context is None else context.get(PROCESS)
        if process is None or (process.alive and not process.paused):
            self._schedule(timer)
        elif process.alive:
            process.held_back.append(timer)
        else:
            timer._cancelled = True
        return timer

    def _schedule(self, timer: asyncio.TimerHandle) -> None:
        due = Due(timer.when())
        due.timer = timer
        heapq.heappush(self._scheduled, due)
        timer._scheduled = True  # type: ignore[attr-defined]

    def kill(self, process: Process) -> None:
        """It runs no further line: what was scheduled for it is dropped, its tasks stand still."""
        assert PROCESS.get() is not process, "nobody can watch his own death"
        process.alive = False
        process.held_back.clear()
        self.trace.note("killed", process.name)
        for handle in (*self._ready, *(due.timer for due in self._scheduled)):
            if _owner(handle) is process:
                handle.cancel()

    def pause(self, process: Process) -> None:
        """SIGSTOP: none of its callbacks run, while time and its peers go on."""
        assert PROCESS.get() is not process, "nobody can continue himself"
        process.paused = True
        self.trace.note("paused", process.name)
        ready, scheduled = self._ready, self._scheduled
        for at, handle in enumerate(ready):
            if _owner(handle) is process:
                process.held_back.append(handle)
                ready[at] = asyncio.Handle(_nothing, (), self)  # the loop counts them
        its = [due for due in scheduled if _owner(due.timer) is process]
        process.held_back += [due.timer for due in sorted(its)]
        scheduled[:] = [due for due in scheduled if _owner(due.timer) is not process]
        heapq.heapify(scheduled)

    def resume(self, process: Process) -> None:
        """SIGCONT: what was held back runs now, in order; timers when they are due."""
        process.paused = False
        self.trace.note("resumed", process.name)
        held_back, process.held_back = process.held_back, []
        for handle in held_back:
            if handle.cancelled():
                continue
            if isinstance(handle, asyncio.TimerHandle):
                self._schedule(handle)
            else:
                self._ready.append(handle)

    def let_go(self, processes: Sequence[Process]) -> None:
        """After the simulation: what they left undone stays undone."""
        for process in processes:
            for task in process.pending():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
            process.tasks.clear()
        self._ready.clear()
        self._scheduled.clear()
        self.close()

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **how: Any
    ) -> asyncio.Task[Any]:
        self._task_count += 1
        task = NumberedTask(self._task_count, work, loop=loop, **how)
        PROCESS.get().tasks.append(task)
        return task

    # Instead of threads and sockets

    def run_in_executor(
        self, executor: object, func: Callable[[Unpack[Args]], Result], *args: *Args
    ) -> asyncio.Future[Result]:
        """Done in one piece at some moment, and known at a later one."""
        known: asyncio.Future[Result] = self.create_future()

        def work() -> None:
            if self.trace.is_used:
                self.trace.note("work", getattr(func, "__qualname__", type(func).__qualname__))
            tell: Callable[[], None]
            try:
                tell = partial(known.set_result, func(*args))
            except Exception as error:
                tell = partial(known.set_exception, error)
            self.call_later(self._pause_s(), lambda: None if known.done() else tell())

        self.call_later(self._pause_s(), work)
        return known

    def _pause_s(self) -> float:
        pause_s = self.dice.random() ** 3 * 0.02 * self.slowness
        if self.slow_hosts:
            pause_s *= self.slow_hosts.get(PROCESS.get().host, 1.0)
        return pause_s

    # What BaseEventLoop leaves to its kinds

    def _write_to_self(self) -> None:
        """Nobody waits in a selector."""

    def _not_handled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.unhandled.append(f"{context['message']}: {error!r}")


def _owner(handle: Any) -> Process | None:  # whose type does not say that it has a context
    context: Context = handle._context
    return context.get(PROCESS)


def _nothing() -> None:
    return


def bury() -> None:
    """Free what the dead held. Their `finally` blocks may want to wait, and complain: nobody cares.

    Call it when no local variable refers to the loop any more.
    """
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    logging.disable(logging.CRITICAL)
    for _ in range(COLLECTIONS):
        gc.collect()
    gc.freeze()  # so that the next burial looks only at what is new
    logging.disable(logging.NOTSET)
    sys.unraisablehook = hook


class SimClock:
    """The loop's time for waiting; for stamping, a wall clock that somebody may set wrong."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.wall_ahead_ms = 1_700_000_000_000

    def mono_ns(self) -> int:
        return self._loop.now_ns

    def mono_ms(self) -> MonoMs:
        return MonoMs(self._loop.now_ns // 1_000_000)

    def wall_ms(self) -> WallMs:
        return WallMs(self.mono_ms() + self.wall_ahead_ms)
