"""What `send_arrow` returns: the future outcome of a whole table."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.delivery import Delivery, wait_until_done


class SentRange(NamedTuple):
    """Rows at consecutive offsets of a partition."""

    topic: str
    partition: int
    offset: int
    """Of the first of them; -1 if the broker does not return it (acks=0)."""
    records: int


class TableDelivery:
    """The future of a table: the offsets of its rows, or the first error."""

    __slots__ = ("_batches",)

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        """How many records were sent."""
        return sum(batch.records for batch in self._batches)

    def done(self) -> bool:
        """Whether everything has its outcome."""
        return all(successor.is_done for batch in self._batches for successor in batch.successors)

    def result(self, timeout: float | None = None) -> list[SentRange]:
        """The offsets of the rows, by batch; waits up to `timeout` seconds for each batch.

        Raises the first error; later batches may still have been written.
        """
        for batch in self._batches:
            Delivery.of(batch, batch.records - 1).exception(timeout)
        return self._ranges()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The first error, or None; waits as `result` does."""
        for batch in self._batches:
            error = Delivery.of(batch, batch.records - 1).exception(timeout)
            if error is not None:
                return error
        return None

    def __await__(self) -> Generator[object, None, list[SentRange]]:
        yield from wait_until_done(self._batches).__await__()
        return self._ranges()

    def _ranges(self) -> list[SentRange]:
        ranges = []
        for batch in self._batches:
            for successor in batch.successors:
                first = successor.metadata(0)
                ranges.append(SentRange(*successor.tp, first.offset, successor.records))
        return ranges
