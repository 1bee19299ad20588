"""Flushes that acknowledgements wait for: one on the pool serves every append before it.

Owns which partitions want a flush and which are being flushed. Never decides whether an append
must wait (the partition does) and never retries: after a failed fsync the kernel may have dropped
the dirty pages and forgotten the error, so the log directory is marked offline. So it is when the
file that was synced has been removed meanwhile: its records are lost.

Where the kernel takes many syncs in one call (`log/io_uring.py`) that is used. Else partitions are
flushed in shares, one job on the pool for each, no more than `SHARES` at a time: to hand work to a
thread and to hear of it costs more than an fsync does, so under load one job flushes many
partitions, and what is requested meanwhile makes up the next.

A flush keeps its files open until they are synced, six of them where a segment was rolled. So only
as many are begun as hold `files_at_once`; the others wait for these.
"""

from __future__ import annotations

import os
from asyncio import Future, TimerHandle
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, Protocol, TypeAlias

from ottla.delay.slices import SliceTime
from ottla.log.file_slice import Source
from ottla.log.files import OutOfResources
from ottla.log.flush import begin_flush, removed_file_error
from ottla.log.log import Flush
from ottla.model.ids import Offset
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

SHARES: Final = 2
"""Jobs at a time. More threads would only wait for each other: they all want the one lock."""

FILES_AT_ONCE: Final = 500
RETRY_S: Final = 1.0
"""After which a flush is tried again that found no file descriptor."""

StartedFlush: TypeAlias = tuple[HostedPartition, Flush]


class Ring(Protocol):
    """Syncs files without a thread; the descriptor is readable when some are done."""

    @property
    def room(self) -> int: ...

    def fileno(self) -> int: ...

    def submit(self, syncs: Sequence[tuple[int, Source]]) -> int: ...

    def done(self) -> list[tuple[int, int]]: ...

    def close(self) -> None: ...


class FlushLoop:
    """Runs flushes off the loop, at most one per partition at a time."""

    def __init__(
        self,
        hosted: HostedPartitions,
        ring: Ring | None = None,
        files_at_once: int = FILES_AT_ONCE,
    ) -> None:
        self._hosted = hosted
        self._files_at_once = files_at_once
        self._files = 0  # held open by flushes that were begun
        self._held_back = False  # whether requests wait for those
        self._later: TimerHandle | None = None
        self._thread_pool = hosted.environment.thread_pool
        self._requested: dict[HostedPartition, None] = {}
        self._waiters: dict[HostedPartition, list[Future[None]]] = {}
        self._jobs = 0
        self._ring = ring
        self._in_ring: dict[int, StartedFlush] = {}
        self._numbers = count()
        hosted.request_flush = self.request
        if ring is not None:
            self._thread_pool.loop.add_reader(ring.fileno(), self._reap)

    def close(self) -> None:
        """Stop: the results of flushes in progress are ignored."""
        if self._ring is not None:
            self._thread_pool.loop.remove_reader(self._ring.fileno())
            self._ring = None

    def request(self, partition: HostedPartition) -> None:
        """Flush a partition soon: after the event loop has handled what it already read."""
        if partition.flushing or partition in self._requested:
            return
        if not self._requested:
            self._thread_pool.loop.call_soon(self._begin)
        self._requested[partition] = None

    async def wait_until_flushed(self, partition: HostedPartition, offset: Offset) -> None:
        """Wait until everything below `offset` is on disk; OSError if the flush fails."""
        while partition.log.recovery_point < offset:
            done: Future[None] = self._thread_pool.loop.create_future()
            self._waiters.setdefault(partition, []).append(done)
            self.request(partition)
            await done

    def _begin(self) -> None:
        if not self._requested or (self._ring is None and self._jobs == SHARES):
            return  # the job that ends first begins the next
        started = list(self._begin_flushes())
        self._held_back = bool(self._requested)
        if self._ring is not None:
            started = self._submit(self._ring, started)
        shares = max(1, min(len(started), SHARES - self._jobs))
        for share in [started[at::shares] for at in range(shares)] if started else []:
            self._jobs += 1
            done = self._thread_pool.run(sync_all, [flush for _, flush in share])
            done.add_done_callback(lambda d, s=share: self._on_job_done(s, d))  # type: ignore[misc]

    def _begin_flushes(self) -> Iterator[StartedFlush]:
        """One at least, and no more than a slice: the others begin when these are done."""
        requested, slice_time = self._requested, SliceTime(self._hosted.environment.clock)
        while requested and self._files < self._files_at_once:
            partition = next(iter(requested))
            try:
                flush = begin_flush(partition.log)
            except OutOfResources as error:
                self._hosted.fail(partition, error)
                self._begin_later()
                return
            except OSError as error:  # it writes the leader epochs, for which there may be no room
                requested.pop(partition, None)
                self._wake_waiters(partition, error)
                self._hosted.fail(partition, error)
                continue
            del requested[partition]
            partition.flushing = True
            self._files += flush.files
            yield partition, flush
            if slice_time.is_over():
                return

    def _begin_later(self) -> None:
        if self._later is None:
            self._later = self._thread_pool.loop.call_later(RETRY_S, self._begin_now)

    def _begin_now(self) -> None:
        self._later = None
        self._begin()

    def _on_job_done(
        self, share: Sequence[StartedFlush], done: Future[list[Exception | None]]
    ) -> None:
        self._jobs -= 1
        for (partition, flush), error in zip(share, done.result(), strict=True):
            self._on_flushed(partition, flush, error)
        self._begin()

    # Through io_uring

    def _submit(self, ring: Ring, started: Sequence[StartedFlush]) -> list[StartedFlush]:
        """Submit to the ring what it accepts; the rest is returned."""
        rest: list[StartedFlush] = []
        syncs: list[tuple[int, Source]] = []
        in_ring, room = self._in_ring, ring.room
        for flush in started:
            lone = flush[1].lone
            if lone is None or len(syncs) == room:
                rest.append(flush)
            else:
                number = next(self._numbers)
                syncs.append((number, lone))
                in_ring[number] = flush
        accepted = ring.submit(syncs) if syncs else 0
        rest += [in_ring.pop(number) for number, _ in syncs[accepted:]]
        return rest

    def _reap(self) -> None:
        assert self._ring is not None
        for number, code in self._ring.done():
            partition, flush = self._in_ring.pop(number)
            error = OSError(code, os.strerror(code), str(partition.log.dir)) if code else None
            self._on_flushed(partition, flush, error)
        if self._held_back:
            self._begin()

    # Afterwards

    def _on_flushed(
        self, partition: HostedPartition, flush: Flush, error: Exception | None
    ) -> None:
        if isinstance(error, OutOfResources):  # to sync the directory: nothing is lost
            self._hosted.fail(partition, error)
            self._thread_pool.loop.call_later(RETRY_S, self._run_again, partition, flush)
            return
        partition.flushing = False
        self._files -= flush.files
        if error is None:
            error = self._removed_error(partition)
        if error is None:
            partition.log.flush_done(flush)
        if self._waiters:
            self._wake_waiters(partition, error)
        if isinstance(error, OSError):
            self._hosted.fail(partition, error)
            return
        if error is not None:
            raise error
        partition.flushed()
        if not self._hosted.advance(partition):  # lesser acks may have moved it before
            self._hosted.waiting.commits.check(partition.key)
            self._hosted.waiting.produce.check(partition.key)
        if partition.waits_for_flush or not flush.whole:
            self.request(partition)

    def _run_again(self, partition: HostedPartition, flush: Flush) -> None:
        self._jobs += 1
        done = self._thread_pool.run(sync_all, [flush])
        done.add_done_callback(lambda done: self._on_job_done([(partition, flush)], done))

    def _removed_error(self, partition: HostedPartition) -> OSError | None:
        """The error if the flushed file was removed meanwhile: one fstat for each flush."""
        if self._hosted.find(partition.key) is not partition:
            return None  # deleted, and its files may be gone
        return removed_file_error(partition.log)

    def _wake_waiters(self, partition: HostedPartition, error: BaseException | None) -> None:
        for waiter in self._waiters.pop(partition, ()):
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


def sync_all(flushes: Sequence[Flush]) -> list[Exception | None]:
    """Sync all of them, even if some fail. Runs in the thread pool."""
    return [_error_of(flush) for flush in flushes]


def _error_of(flush: Flush) -> Exception | None:
    try:
        flush.run()
    except Exception as error:
        return error
    return None
