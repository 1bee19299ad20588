"""Flushes that acknowledgements wait for: one on the pool serves every append before it.

Owns which partitions want a flush and which are being flushed. Never decides whether an append
must wait (the partition does) and never retries: after a failed fsync the kernel may have dropped
the dirty pages and forgotten the error, so the directory is given up.
"""

from __future__ import annotations

from asyncio import Future

from ottla.log.log import Flush
from ottla.model.ids import Offset
from ottla.replica.hosted import Hosted
from ottla.replica.partition import Partition


class FlushLoop:
    """Runs flushes off the loop, at most one per partition at a time."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted
        self._off = hosted.around.off
        self._wanted: dict[Partition, None] = {}
        self._awaited: dict[Partition, list[Future[None]]] = {}

    def want(self, partition: Partition) -> None:
        """An append waits. Flushes begin once the loop has answered what it already read."""
        if partition.flushing or partition in self._wanted:
            return
        if not self._wanted:
            self._off.loop.call_soon(self._begin)
        self._wanted[partition] = None

    async def until(self, partition: Partition, offset: Offset) -> None:
        """Until everything below `offset` is on the disk; OSError when it cannot be."""
        while partition.log.recovery_point < offset:
            done: Future[None] = self._off.loop.create_future()
            self._awaited.setdefault(partition, []).append(done)
            self.want(partition)
            await done

    def _begin(self) -> None:
        wanted, self._wanted = self._wanted, {}
        for partition in wanted:
            try:
                flush = partition.log.flush_begin()
            except OSError as error:  # it writes the leader epochs, for which there may be no room
                self._tell(partition, error)
                self._hosted.fail(partition, error)
                continue
            partition.flushing = True
            done = self._off.run(flush.run)
            done.add_done_callback(lambda f, p=partition, fl=flush: self._done(p, fl, f))  # type: ignore[misc]

    def _done(self, partition: Partition, flush: Flush, done: Future[None]) -> None:
        partition.flushing = False
        error = done.exception()
        if error is None:
            partition.log.flush_done(flush)
        self._tell(partition, error)
        if isinstance(error, OSError):
            self._hosted.fail(partition, error)
            return
        if error is not None:
            raise error
        partition.flushed()
        self._hosted.advance(partition)
        self._hosted.waiting.produce.check(partition.key)  # lesser acks may have moved it before
        if partition.waits_for_flush:
            self.want(partition)

    def _tell(self, partition: Partition, error: BaseException | None) -> None:
        for waiter in self._awaited.pop(partition, ()):
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
