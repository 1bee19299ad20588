"""Delayed operations: they wait for a condition or for their timeout.

Owns: the watch lists by key, and the operations that still wait.
Never: decides whether an operation may complete (the operation does), takes a lock, owns a thread.

Everything runs on one event loop, so an operation completes exactly once and no trigger is lost:
nothing else runs between a check and the completion. What remains possible is re-entrance
(completing one operation may trigger another, or the same), so `check` works on a copy of its list,
and an operation that was triggered during its first try is tried again once it is watched.

A finished operation leaves the timer at once but its other watch lists lazily: by the next check
of that key, or by a purge when `purge_interval` finished ones are still listed. So finishing a
fetch of a thousand partitions does not have to visit a thousand lists.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable
from typing import Final, Generic, TypeVar

from ottla.delay.timers import Timers
from ottla.delay.wheel import Entry

log = logging.getLogger(__name__)

PURGE_INTERVAL: Final = 1_000
"""How many finished operations may still be listed before they are swept out. A count."""

Key = TypeVar("Key", bound=Hashable)


class Delayed(Entry):
    """One waiting operation. Override `try_complete`, `on_complete` and, if needed, `on_expire`."""

    __slots__ = ("_listed", "_purgatory", "completed", "delay_ms")

    def __init__(self, delay_ms: int) -> None:
        super().__init__()
        self.delay_ms = delay_ms
        self.completed = False
        self._purgatory: Purgatory[Hashable] | None = None
        self._listed = 0  # the number of watch lists that still contain it

    def try_complete(self) -> bool:
        """If the condition holds, `return self.force_complete()`; else False. Called often."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """Answer. Runs exactly once, for a condition met and for a timeout alike."""
        raise NotImplementedError

    def on_expire(self) -> None:
        """Runs after `on_complete` when it was the timeout that completed it."""

    def force_complete(self) -> bool:
        """Complete now. True for the one caller that did it."""
        if self.completed:
            return False
        self.abandon()
        self.on_complete()
        return True

    def hasten(self, delay_ms: int) -> None:
        """Wait no longer than this from now on."""
        if self._purgatory is not None:
            self._purgatory._timers.hasten(self, delay_ms)

    def abandon(self) -> None:
        """The reply is not needed any more: complete without one."""
        self.completed = True
        if self._purgatory is not None:
            self._purgatory._finish(self)
            self._purgatory = None

    def on_timeout(self) -> None:
        if self.force_complete():
            self.on_expire()


class Purgatory(Generic[Key]):
    """Waiting operations by the keys whose changes may finish them."""

    def __init__(self, name: str, timers: Timers, purge_interval: int = PURGE_INTERVAL) -> None:
        self.name = name
        self.delayed = 0
        self._timers = timers
        self._purge_interval = purge_interval
        self._lists: dict[Key, list[Delayed]] = {}
        self._stale = 0  # finished and still listed
        self._checks = 0

    @property
    def watched(self) -> int:
        """Entries in all watch lists; an operation counts once for every key."""
        return sum(map(len, self._lists.values()))

    @property
    def key_count(self) -> int:
        return len(self._lists)

    def try_complete_else_watch(self, op: Delayed, keys: Collection[Key]) -> bool:
        """Finish `op` now, or watch it under every key until it is done or out of time.

        True when it is complete on return, by its condition or because it had no time to wait.
        """
        checks = self._checks
        if op.try_complete():
            return True
        self._list(op, keys)
        if self._checks != checks and op.try_complete():  # triggered before it was watched
            return True
        self._timers.add(op, op.delay_ms)
        return op.completed

    def watch(self, op: Delayed, keys: Collection[Key]) -> None:
        """Watch `op`, which the caller has just found that it must wait."""
        self._list(op, keys)
        self._timers.add(op, op.delay_ms)

    def check(self, key: Key) -> int:
        """`key` has changed: try the operations that wait for it. Returns how many completed."""
        self._checks += 1
        watchers = self._lists.get(key)
        if watchers is None:
            return 0
        finished = 0
        for op in tuple(watchers):
            if not op.completed:
                try:
                    finished += op.try_complete()
                except Exception:  # one failing operation must not prevent the others
                    log.exception(
                        "purgatory %s: try_complete of %s failed", self.name, type(op).__name__
                    )
        self._sweep(key)
        return finished

    def drop(self, key: Key) -> list[Delayed]:
        """Stop watching `key`; returns the operations under it, for the caller to complete."""
        waiting = self._waiting(self._lists.pop(key, []))
        for op in waiting:
            op._listed -= 1
        return waiting

    def finish_all(self) -> None:
        """Complete all waiting operations now."""
        for key in list(self._lists):
            for op in self.drop(key):
                op.force_complete()

    def _list(self, op: Delayed, keys: Collection[Key]) -> None:
        op._purgatory = self  # type: ignore[assignment]  # it only ever reports its own end
        op._listed = len(keys)
        self.delayed += 1
        lists = self._lists
        for key in keys:
            watchers = lists.get(key)
            if watchers is None:
                lists[key] = [op]
            else:
                watchers.append(op)

    def _finish(self, op: Delayed) -> None:
        self._timers.cancel(op)
        self.delayed -= 1
        if op._listed:
            self._stale += 1
            if self._stale > self._purge_interval:
                for key in list(self._lists):
                    self._sweep(key)

    def _sweep(self, key: Key) -> None:
        watchers = self._lists.get(key)
        if watchers is None:
            return
        waiting = self._waiting(watchers)
        if not waiting:
            del self._lists[key]
        elif len(waiting) != len(watchers):
            self._lists[key] = waiting

    def _waiting(self, watchers: list[Delayed]) -> list[Delayed]:
        """Those that still wait; the finished ones are counted out of the list they leave."""
        waiting = []
        for op in watchers:
            if not op.completed:
                waiting.append(op)
                continue
            op._listed -= 1
            if op._listed == 0:
                self._stale -= 1
        return waiting
