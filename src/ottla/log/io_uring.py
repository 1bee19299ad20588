"""Many files synced by one system call and no thread: Linux's io_uring, for this one purpose.

Owns the ring's memory and its descriptors. Never decides what is synced, and never waits: a
descriptor becomes readable when something is done. Where there is no io_uring (another system, an
old kernel, a container that forbids it) `open` gives None, and a thread pool does this work.

A thread that comes back from fsync asks for the interpreter's lock, and takes it from the loop;
ten thousand times a second that costs more than everything else a broker does
(docs/decisions/0012-flushes-through-io-uring.md). The kernel's own workers need no lock.

Both ends of the ring are this thread's, between calls of `io_uring_enter`: the kernel reads
entries during that call only, and writes what has ended during that call too, or, where it is too
old for that, before the descriptor becomes readable. So plain loads and stores do.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from ottla.log.file_slice import Source

INTERRUPTS: Final = Path("/proc/interrupts")


def for_workers() -> frozenset[int]:
    """Where this process's sync workers should be; none: wherever they like."""
    try:
        interrupts = INTERRUPTS.read_text()
    except OSError:  # hidden from us
        interrupts = ""
    return all_but_one(frozenset(os.sched_getaffinity(0)), interrupts)


def all_but_one(allowed: frozenset[int], interrupts: str) -> frozenset[int]:
    """All that are allowed but the least interrupted; none where only one is."""
    if len(allowed) < 2:
        return frozenset()
    counts = device_interrupts(interrupts)
    return allowed - {min(sorted(allowed), key=lambda cpu: counts.get(cpu, 0))}


def device_interrupts(table: str) -> dict[int, int]:
    """By processor, from what /proc/interrupts says: a column for each, a row for each source."""
    head, _, rows = table.partition("\n")
    processors = [int(name[3:]) for name in head.split() if name[3:].isdigit()]
    counts = dict.fromkeys(processors, 0)
    for row in rows.splitlines():
        source, _, rest = row.partition(":")
        if not source.strip().isdigit():
            continue  # timers, and processors that call each other
        for processor, count in zip(processors, rest.split(), strict=False):
            if not count.isdigit():
                break  # a row that does not count by processor
            counts[processor] += int(count)
    return counts


ENTRIES: Final = 256
"""Syncs under way at a time."""

WORKERS: Final = 64
"""Of the kernel's, that sync at a time. By default there are four for each processor; what is more
then waits in a queue, and whenever a worker falls asleep over its own sync the kernel interrupts
the thread that has the ring, to see to that queue (benchmarks/transactions.py). Besides, syncs
under way together share one commit of the file system's journal."""

_SETUP, _ENTER, _REGISTER = 425, 426, 427  # the same on every architecture Python runs on
_TASKRUN_FLAG, _SINGLE_ISSUER, _DEFER_TASKRUN = 1 << 9, 1 << 12, 1 << 13
_GETEVENTS: Final = 1
_MORE: Final = 1 << 2
"""Set while something has ended and is not written down."""
_ROUNDS: Final = 2 * ENTRIES // 16
"""The kernel writes down about twenty ends in one call, and may have two things to do for each.
Not for as long as the mark is set: a worker adds to the kernel's list first and sets the mark then,
so it may set it when the list has been seen to already, and nothing takes it away."""
_REGISTER_EVENTFD: Final = 4
_REGISTER_PROCESSORS: Final = 17
_REGISTER_WORKERS: Final = 19
_SINGLE_MMAP: Final = 1
_SQES_AT: Final = 0x1000_0000
_PARAMS: Final = Struct("=7I3I10I10I")
_FSYNC, _DATASYNC = 3, 1
_SQE: Final = Struct("=BBHiQQIIQ24x")
_CQE: Final = Struct("=Qi4x")
_WRAP: Final = 0xFFFF_FFFF


class SyncRing:
    def __init__(self, ring: int, wakes: int, params: Sequence[int]) -> None:
        entries, completions = params[0], params[1]
        _, self._tail, mask, _, self._flags, _, array = (params[10 + n] // 4 for n in range(7))
        head, tail, done_mask = (params[20 + n] // 4 for n in range(3))
        self._done_head, self._done_tail = head, tail
        self._cqes = params[25]
        size = max(array * 4 + entries * 4, self._cqes + completions * _CQE.size)
        self._ring, self._wakes = ring, wakes
        self._map = mmap.mmap(ring, size)
        self._sqes = mmap.mmap(ring, entries * _SQE.size, offset=_SQES_AT)
        self._words = memoryview(self._map).cast("I")
        self._mask, self._done_mask = self._words[mask], self._words[done_mask]
        for at in range(entries):  # an entry's place in the queue is its place in the array
            self._words[array + at] = at
        self._under_way: dict[int, Source] = {}
        self.entries = entries

    @classmethod
    def open(cls, entries: int = ENTRIES, *, deferred: bool = True) -> SyncRing | None:
        """A ring for the calling thread.

        `deferred`, where the kernel can (6.1): what has ended is written down when it is asked for.
        Else the kernel interrupts this thread for every single sync.
        """
        if sys.platform != "linux":
            return None
        flags = _TASKRUN_FLAG | _SINGLE_ISSUER | _DEFER_TASKRUN if deferred else 0
        params = ctypes.create_string_buffer(_PARAMS.pack(0, 0, flags, *[0] * 27), _PARAMS.size)
        ring = _call(_SETUP, entries, params)
        if ring < 0:
            return cls.open(entries, deferred=False) if deferred else None
        wakes = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        values = _PARAMS.unpack(params.raw)
        if not values[5] & _SINGLE_MMAP or _call(
            _REGISTER, ring, _REGISTER_EVENTFD, _int(wakes), 1
        ):
            os.close(wakes)
            os.close(ring)
            return None
        made = cls(ring, wakes, values)
        made.allow(WORKERS)
        made.place(for_workers())
        return made

    def fileno(self) -> int:
        """Readable when a sync has ended."""
        return self._wakes

    def allow(self, workers: int) -> int:
        """Let so many files be synced at a time; how many it were, 0 where the kernel decides."""
        counts = (ctypes.c_uint * 2)(workers, 0)  # those for regular files; the others as they are
        return 0 if _call(_REGISTER, self._ring, _REGISTER_WORKERS, counts, 2) else counts[0]

    def place(self, on: frozenset[int]) -> bool:
        """Let the kernel's workers run on these processors only; whether that was done."""
        mask = sum(1 << processor for processor in on)
        given = mask.to_bytes((mask.bit_length() + 63) // 64 * 8, sys.byteorder)
        return bool(on) and not _call(
            _REGISTER, self._ring, _REGISTER_PROCESSORS, given, len(given)
        )

    @property
    def room(self) -> int:
        return self.entries - len(self._under_way)

    def submit(self, syncs: Sequence[tuple[int, Source]]) -> int:
        """Begin to sync these, each known by a number of its own; how many were taken."""
        assert len(syncs) <= self.room, "completions would be lost"
        words, mask = self._words, self._mask
        tail = words[self._tail]
        for at, (token, source) in enumerate(syncs, tail):
            descriptor = source.fileno()
            place = (at & mask) * _SQE.size
            _SQE.pack_into(self._sqes, place, _FSYNC, 0, 0, descriptor, 0, 0, 0, _DATASYNC, token)
        words[self._tail] = tail + len(syncs) & _WRAP
        taken = max(0, _call(_ENTER, self._ring, len(syncs), 0, 0, None, 0))
        words[self._tail] = tail + taken & _WRAP  # the rest is as if it had never been there
        self._under_way.update(syncs[:taken])
        return taken

    def done(self) -> list[tuple[int, int]]:
        """The syncs that ended: whose, and the error number, 0 when there was none."""
        try:
            os.eventfd_read(self._wakes)
        except BlockingIOError:
            return []
        words, mask = self._words, self._done_mask
        for _ in range(_ROUNDS):
            if not words[self._flags] & _MORE:
                break
            _call(_ENTER, self._ring, 0, 0, _GETEVENTS, None, 0)
        head, tail = words[self._done_head], words[self._done_tail]
        ended = []
        while head != tail:
            token, result = _CQE.unpack_from(self._map, self._cqes + (head & mask) * _CQE.size)
            del self._under_way[token]
            ended.append((token, -result))
            head = head + 1 & _WRAP
        words[self._done_head] = head
        return ended

    def close(self) -> None:
        """The kernel finishes what it has begun; results are discarded."""
        self._words.release()
        self._map.close()
        self._sqes.close()
        os.close(self._ring)
        os.close(self._wakes)


_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _call(number: int, *arguments: object) -> int:
    return int(_libc.syscall(number, *arguments))


def _int(value: int) -> object:
    return ctypes.byref(ctypes.c_int(value))
