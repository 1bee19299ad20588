"""What `send` returns: the future outcome of a record.

Owns only its place in a batch; the outcome is the batch's. Has the methods of
`concurrent.futures.Future`, and can be awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import nullcontext
from typing import Final

from ottla.client.producer.buffer.batch import Batch, RecordMetadata
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition


async def wait_until_done(batches: Iterable[Batch]) -> None:
    """Wait until each of these, or the batches it was split into, has its outcome."""
    todo = list(batches)
    while todo:
        batch = todo.pop()
        successors = batch.successors
        if successors != [batch]:
            todo += successors
        elif not batch.is_done:
            await wait_for_change(batch)
            todo.append(batch)


async def wait_for_change(batch: Batch) -> None:
    """Wait until the batch has its outcome, or was split."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()

    def arrive() -> None:
        if not arrived.done():
            arrived.set_result(None)

    if batch.watch(lambda: loop.call_soon_threadsafe(arrive)):
        await arrived


log: Final = logging.getLogger("ottla.producer")


class Delivery:
    """The future of one record: its offset, or the error.

    Created empty and filled by the code that appends the record: there is one for every record, and
    creating it takes half the time without a constructor of its own (58 ns, not 113).
    """

    __slots__ = ("batch", "index")

    batch: Batch
    """The batch that its record was appended to; it may have been split since."""
    index: int
    """Its place there."""

    @classmethod
    def of(cls, batch: Batch, index: int) -> Delivery:
        delivery = cls()
        delivery.batch = batch
        delivery.index = index
        return delivery

    def __repr__(self) -> str:
        batch, index = self.batch.part(self.index)
        if not batch.is_done:
            return f"<Delivery to {batch.tp}: pending>"
        return f"<Delivery to {batch.tp}: {batch.error or batch.metadata(index)!r}>"

    def done(self) -> bool:
        """Whether there is an outcome."""
        return self.batch.part(self.index)[0].is_done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """The record's metadata; waits up to `timeout` seconds, raises the error."""
        batch, index = self._wait(timeout)
        return batch.metadata(index)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, or None; waits as `result` does."""
        return self._wait(timeout)[0].error

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback(self)` when the outcome is known: at once if it already is.

        Callbacks of a partition are called in the order its records were sent, on the producer's
        own thread: they must be quick, and what they raise is logged.
        """

        def guarded(delivery: Delivery) -> None:
            try:
                callback(delivery)
            except Exception:
                log.exception("delivery callback failed for a record to %s", delivery.batch.tp)

        batch, index = self.batch.part(self.index)
        while not batch.add_callback(index, guarded, self):
            successor, successor_index = batch.part(index)
            if successor is batch:  # it has its outcome
                guarded(self)
                return
            batch, index = successor, successor_index

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        while not self.done():
            yield from wait_for_change(self.batch.part(self.index)[0]).__await__()
        return self.result(0)

    def _wait(self, timeout: float | None) -> tuple[Batch, int]:
        while True:
            batch, index = self.batch.part(self.index)
            if batch.is_done:
                return batch, index
            if not batch.wait(timeout):
                raise TimeoutError(
                    f"no acknowledgement of a record to {batch.tp} within {timeout} s"
                )


def failed_delivery(tp: TopicPartition, error: BaseException) -> Delivery:
    """The outcome of a record that was never appended to a batch."""
    batch = Batch(tp, 0, 0, MonoMs(0), nullcontext(True))
    batch.fail(error)
    return Delivery.of(batch, 0)
