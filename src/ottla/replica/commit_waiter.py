"""Waits until batches written by the broker itself, mostly by coordinators, are committed.

Owns the waits, by partition and in order of arrival, and one timer for all their timeouts. Never
decides what is committed: the partition does. Callers that change a partition's watermark or role
call `check`.

A client's produce waits in a purgatory instead, under several keys and with a timer of its own. For
a coordinator's writes that cost as much as the append; a transaction has three such waits. Hot:
benchmarks/transactions.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ottla.delay.timers import Call, Timers
from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch, Offset, TopicPartition
from ottla.replica.partition import HostedPartition

log = logging.getLogger(__name__)

Done: TypeAlias = Callable[[ErrorCode], None]


class _Wait(NamedTuple):
    """Everything below `end` is waited for, under the epoch in which it was written."""

    partition: HostedPartition
    epoch: LeaderEpoch
    end: Offset
    expires_ms: MonoMs
    on_done: Done


class CommitWaiter:
    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock
        self._waits: dict[TopicPartition, list[_Wait]] = {}
        self._timer: Call | None = None
        self._timer_expires_ms = MonoMs(0)

    def __len__(self) -> int:
        return sum(map(len, self._waits.values()))

    def wait(self, partition: HostedPartition, end: Offset, timeout_ms: int, on_done: Done) -> None:
        """Call `on_done` once everything below `end` is committed, or will not be in time."""
        epoch = partition.leader_epoch
        code = partition.acknowledged(epoch, end)
        if code is not None:
            on_done(code)
            return
        expires_ms = MonoMs(self._clock.mono_ms() + timeout_ms)
        wait = _Wait(partition, epoch, end, expires_ms, on_done)
        waits = self._waits.get(partition.log.partition)
        if waits is None:
            self._waits[partition.log.partition] = [wait]
        else:
            waits.append(wait)
        if self._timer is None or expires_ms < self._timer_expires_ms:
            self._set_timer(expires_ms)

    def check(self, key: TopicPartition) -> None:
        """`key` has changed: call back the waits that are finished."""
        waits = self._waits.get(key)
        if waits is None:
            return
        finished: list[tuple[Done, ErrorCode]] = []
        left: list[_Wait] = []
        for wait in waits:
            code = wait.partition.acknowledged(wait.epoch, wait.end)
            if code is None:
                left.append(wait)
            else:
                finished.append((wait.on_done, code))
        if left:
            self._waits[key] = left
        else:
            del self._waits[key]
        for done, code in finished:
            _call(done, code, key)

    def _set_timer(self, expires_ms: MonoMs) -> None:
        if self._timer is not None:
            self._timers.cancel(self._timer)
        self._timer_expires_ms = expires_ms
        self._timer = Call(self._expire)
        self._timers.add(self._timer, max(1, expires_ms - self._clock.mono_ms()))

    def _expire(self) -> None:
        """Time out overdue waits; mostly there are none, because later waits reuse the timer."""
        self._timer = None
        now_ms = self._clock.mono_ms()
        late: list[tuple[Done, ErrorCode, TopicPartition]] = []
        for key, waits in list(self._waits.items()):
            late += [
                (wait.on_done, wait.partition.timeout_code, key)
                for wait in waits
                if wait.expires_ms <= now_ms
            ]
            left = [wait for wait in waits if wait.expires_ms > now_ms]
            if left:
                self._waits[key] = left
            else:
                del self._waits[key]
        if self._waits:
            self._set_timer(min(w.expires_ms for waits in self._waits.values() for w in waits))
        for done, code, key in late:
            _call(done, code, key)


def _call(done: Done, code: ErrorCode, key: TopicPartition) -> None:
    try:
        done(code)
    except Exception:  # one failing callback must not prevent the others
        log.exception("a callback waiting for a commit of %s failed", key)
