"""Flushes that acknowledgements wait for: one on the pool serves every append before it.

Owns which partitions want a flush and which are being flushed. Never decides whether an append
must wait (the partition does) and never retries: after a failed fsync the kernel may have dropped
the dirty pages and forgotten the error, so the directory is given up. So it is when the file that
was synced has been removed meanwhile: nobody will find those records again.

Where the kernel takes many syncs in one call (`log/io_uring.py`) that is used. Else partitions are
flushed in shares, one job on the pool for each, no more than `SHARES` at a time: to hand work to a
thread and to hear of it costs more than an fsync does, so under load one job flushes many
partitions, and what is wanted meanwhile makes up the next.
"""

from __future__ import annotations

import os
from asyncio import Future
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, Protocol, TypeAlias

from ottla.log.file_slice import Source
from ottla.log.flush import begin_flush, removed_file_error
from ottla.log.log import Flush
from ottla.model.ids import Offset
from ottla.replica.hosted_partitions import HostedPartitions
from ottla.replica.partition import HostedPartition

SHARES: Final = 2
"""Jobs at a time. More threads would only wait for each other: they all want the one lock."""

Begun: TypeAlias = tuple[HostedPartition, Flush]


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

    def __init__(self, hosted: HostedPartitions, ring: Ring | None = None) -> None:
        self._hosted = hosted
        self._off = hosted.around.off
        self._wanted: dict[HostedPartition, None] = {}
        self._awaited: dict[HostedPartition, list[Future[None]]] = {}
        self._jobs = 0
        self._ring = ring
        self._in_ring: dict[int, Begun] = {}
        self._numbers = count()
        hosted.want_flush = self.want
        if ring is not None:
            self._off.loop.add_reader(ring.fileno(), self._reap)

    def close(self) -> None:
        """Nobody waits any more: what is under way ends unheard."""
        if self._ring is not None:
            self._off.loop.remove_reader(self._ring.fileno())
            self._ring = None

    def want(self, partition: HostedPartition) -> None:
        """An append waits. Flushes begin once the loop has answered what it already read."""
        if partition.flushing or partition in self._wanted:
            return
        if not self._wanted:
            self._off.loop.call_soon(self._begin)
        self._wanted[partition] = None

    async def until(self, partition: HostedPartition, offset: Offset) -> None:
        """Until everything below `offset` is on the disk; OSError when it cannot be."""
        while partition.log.recovery_point < offset:
            done: Future[None] = self._off.loop.create_future()
            self._awaited.setdefault(partition, []).append(done)
            self.want(partition)
            await done

    def _begin(self) -> None:
        if not self._wanted or (self._ring is None and self._jobs == SHARES):
            return  # the job that ends first begins the next
        begun = list(self._begun())
        if self._ring is not None:
            begun = self._submitted(self._ring, begun)
        shares = max(1, min(len(begun), SHARES - self._jobs))
        for share in [begun[at::shares] for at in range(shares)] if begun else []:
            self._jobs += 1
            done = self._off.run(sync_all, [flush for _, flush in share])
            done.add_done_callback(lambda d, s=share: self._ended(s, d))  # type: ignore[misc]

    def _begun(self) -> Iterator[Begun]:
        wanted, self._wanted = self._wanted, {}
        for partition in wanted:
            try:
                flush = begin_flush(partition.log)
            except OSError as error:  # it writes the leader epochs, for which there may be no room
                self._tell(partition, error)
                self._hosted.fail(partition, error)
                continue
            partition.flushing = True
            yield partition, flush

    def _ended(self, share: Sequence[Begun], done: Future[list[Exception | None]]) -> None:
        self._jobs -= 1
        for (partition, flush), error in zip(share, done.result(), strict=True):
            self._flushed(partition, flush, error)
        self._begin()

    # By the kernel alone

    def _submitted(self, ring: Ring, begun: Sequence[Begun]) -> list[Begun]:
        """Give the ring what it can take; what it cannot."""
        rest: list[Begun] = []
        syncs: list[tuple[int, Source]] = []
        in_ring, room = self._in_ring, ring.room
        for one in begun:
            lone = one[1].lone
            if lone is None or len(syncs) == room:
                rest.append(one)
            else:
                number = next(self._numbers)
                syncs.append((number, lone))
                in_ring[number] = one
        accepted = ring.submit(syncs) if syncs else 0
        rest += [in_ring.pop(number) for number, _ in syncs[accepted:]]
        return rest

    def _reap(self) -> None:
        assert self._ring is not None
        for number, code in self._ring.done():
            partition, flush = self._in_ring.pop(number)
            error = OSError(code, os.strerror(code), str(partition.log.dir)) if code else None
            self._flushed(partition, flush, error)

    # Afterwards

    def _flushed(self, partition: HostedPartition, flush: Flush, error: Exception | None) -> None:
        partition.flushing = False
        if error is None:
            error = self._removed(partition)
        if error is None:
            partition.log.flush_done(flush)
        if self._awaited:
            self._tell(partition, error)
        if isinstance(error, OSError):
            self._hosted.fail(partition, error)
            return
        if error is not None:
            raise error
        partition.flushed()
        if not self._hosted.advance(partition):  # lesser acks may have moved it before
            self._hosted.waiting.commits.check(partition.key)
            self._hosted.waiting.produce.check(partition.key)
        if partition.waits_for_flush:
            self.want(partition)

    def _removed(self, partition: HostedPartition) -> OSError | None:
        """Whether the disk has what it said it has: one fstat for each flush."""
        if self._hosted.find(partition.key) is not partition:
            return None  # deleted, and its files may be gone
        return removed_file_error(partition.log)

    def _tell(self, partition: HostedPartition, error: BaseException | None) -> None:
        for waiter in self._awaited.pop(partition, ()):
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


def sync_all(flushes: Sequence[Flush]) -> list[Exception | None]:
    """Every one of them, whatever becomes of the others. Runs on the pool."""
    return [_error_of(flush) for flush in flushes]


def _error_of(flush: Flush) -> Exception | None:
    try:
        flush.run()
    except Exception as error:
        return error
    return None
