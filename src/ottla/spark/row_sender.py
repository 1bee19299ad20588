"""The rows of a task on their way to topics.

Owns: which rows go to which topic and partition, and that every failure is heard of. Never: knows
of transactions; it is handed a producer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.client.producer.sync import Producer
from ottla.client.producer.table_delivery import TableDelivery
from ottla.model.errors import UserError
from ottla.spark.rows import SinkColumns

if TYPE_CHECKING:
    import pyarrow as pa


class RowSender:
    """Sends Arrow batches of one task."""

    def __init__(self, producer: Producer, columns: SinkColumns, topic: str | None) -> None:
        self._producer = producer
        self._columns = columns
        self._topic = topic
        self._pending: deque[TableDelivery] = deque()
        self.records = 0

    def send(self, batch: pa.RecordBatch) -> None:
        """Hand the rows over; raises what went wrong with earlier ones."""
        for topic, rows in self._by_topic(_renamed_columns(batch, self._columns)):
            for part, by_number in _by_partition(rows):
                self._pending.append(self._sent(topic, part, by_number))
        self.records += batch.num_rows
        while self._pending and self._pending[0].done():
            self._pending.popleft().result(0)

    def finish(self) -> None:
        """Wait until every row is with its broker."""
        self._producer.flush()
        while self._pending:
            self._pending.popleft().result()

    def _sent(self, topic: str, rows: pa.Table, by_number: bool) -> TableDelivery:
        columns = set(rows.column_names)
        return self._producer.send_arrow(
            topic,
            rows,
            key="key" if "key" in columns else None,
            headers="headers" if "headers" in columns else None,
            timestamp="timestamp" if "timestamp" in columns else None,
            partition_by="partition" if by_number else None,
        )

    def _by_topic(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        import pyarrow.compute as pc

        if self._topic is not None:
            yield self._topic, rows
            return
        topics = rows.column("topic")
        if topics.null_count:
            raise UserError(
                "a row has no topic: its column topic is null and the option topic is not set"
            )
        for topic in pc.unique(topics).to_pylist():
            yield topic, rows.filter(pc.equal(topics, topic))


def _renamed_columns(batch: pa.RecordBatch, columns: SinkColumns) -> pa.Table:
    """The columns that are written, by the names they have here."""
    import pyarrow as pa

    found: dict[str, object] = {
        name: batch.column(place) for name, place in columns._asdict().items() if place is not None
    }
    return pa.table(found)


def _by_partition(rows: pa.Table) -> Iterator[tuple[pa.Table, bool]]:
    """Rows with a partition of their own, and those without."""
    import pyarrow.compute as pc

    if "partition" not in rows.column_names:
        yield rows, False
        return
    numbers = rows.column("partition")
    for part, by_number in (
        (rows.filter(pc.is_valid(numbers)), True),
        (rows.filter(pc.is_null(numbers)), False),
    ):
        if part.num_rows:
            yield part, by_number
