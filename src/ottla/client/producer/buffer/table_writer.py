"""Arrow tables to batches, without a Python object per record.

Owns: the roles of columns, how a table is sliced to fit the buffer memory, and the partitions of
rows. The kernels of `protocol.records.columns` encode the bytes. Hot:
benchmarks/clients_producer.py.

Runs on the thread of the caller: kernels run without the interpreter's lock, so the sender sends
the batches of one slice while the next is encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.cluster_view import TopicView
from ottla.client.errors import UserError
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.core import ProducerCore
from ottla.model.ids import TopicPartition
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import HEADER_SIZE

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.protocol.records.columns.encode import Encoded

ROW_OVERHEAD: Final = 16
PIECES: Final = 4
"""A table is encoded in pieces of at most a quarter of the buffer memory, and no more than that is
claimed at once."""
PIECE_BYTES: Final = 4 << 20
SHARE_BYTES: Final = 256 << 10
"""Smaller pieces are faster: sorting rows by partition stays within the processor's cache (50 ns a
row instead of 120), and the broker gets data sooner. But each partition should get this much of a
piece, so that its batches are not too small."""
LEAST_BYTES: Final = 16_384
REQUEST_OVERHEAD: Final = 512
"""Bytes of a request in addition to one batch, so that the batch can fill it."""


class Columns(NamedTuple):
    """The names of the columns with keys, values, headers and timestamps; None: there is none."""

    value: str | None = "value"
    key: str | None = None
    headers: str | None = None
    timestamp: str | None = None
    partition_by: str | int | None = None
    """A column of partition numbers, or one to hash instead of the key; a number: for all rows."""


class TableWriter:
    """Turns tables for one topic into batches."""

    def __init__(self, core: ProducerCore, view: TopicView, columns: Columns) -> None:
        try:
            import pyarrow  # noqa: F401

            from ottla.protocol.records.columns import encode, partition
        except ImportError:
            raise UserError(
                "send_arrow needs pyarrow and numba: pip install 'ottla[arrow]'"
            ) from None
        self._config = core.config
        self._intake = core.intake
        self._clock = core.clock
        self._view = view
        self._columns = columns
        self._encode = encode.encode_batches
        self._checksum_by = encode.checksum_by
        self._partition_column = partition.partition_column
        config = core.config
        self._part_bytes = config.buffer_memory // PIECES
        self._codec = Codec[config.compression_type.upper()]
        self._batch_bytes = config.batch_size
        if not config.is_given("batch_size"):
            # All records are there already: a batch may be as large as a request.
            largest = config.max_request_size - REQUEST_OVERHEAD
            self._batch_bytes = max(LEAST_BYTES, min(largest, config.buffer_memory // PIECES))

    def parts(self, table: pa.Table) -> Iterator[list[Batch]]:
        """The batches of a table, in groups whose memory is claimed together.

        Usually one piece's batches: a caller that waits for memory is woken once for all of them.
        """
        for piece in self._pieces(_as_table(table)):
            part: list[Batch] = []
            size = 0
            for batch in self._batches(piece):
                if part and size + batch.reserved > self._part_bytes:
                    yield part
                    part, size = [], 0
                part.append(batch)
                size += batch.reserved
            yield part

    def _batches(self, piece: pa.Table) -> Iterator[Batch]:
        columns = self._columns
        value = self._column(piece, "value", columns.value)
        numbers, single = self._numbers(piece)
        encoded = self._encode(
            self._column(piece, "key", columns.key),
            value,
            self._column(piece, "headers", columns.headers),
            self._column(piece, "timestamp", columns.timestamp),
            now_ms=self._clock.wall_ms(),
            partitions=numbers,
            codec=self._codec,
            level=self._config.compression_level,
            max_batch_bytes=self._batch_bytes,
            finish=False,
        )
        for batch in encoded:
            chosen = single if numbers is None and single is not None else batch.partition
            if numbers is None and single is None:
                chosen = self._intake.next_sticky_partition(self._view, len(batch.data))
            yield self._batch(chosen, batch)

    def _batch(self, partition: int, encoded: Encoded) -> Batch:
        size = len(encoded.data)
        tp = TopicPartition(self._view.name, partition)
        batch = Batch(tp, size, size, self._clock.mono_ms(), self._intake.queues.lock)
        batch.encoded = encoded.data
        batch.plain_bytes = encoded.plain_bytes
        batch.records = encoded.records
        batch.append_time_ms = encoded.max_timestamp
        if encoded.section_checksum >= 0:
            batch.checksum = partial(self._checksum_by, encoded.section_checksum)
        batch.is_closed = True
        return batch

    def _pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        """Slices of the table, each of at most a part of the buffer memory."""
        rows = table.num_rows
        if not rows:
            return
        row_bytes = table.nbytes / rows + ROW_OVERHEAD
        preferred_bytes = max(
            PIECE_BYTES, len(self._view.partitions) * SHARE_BYTES, self._batch_bytes
        )
        piece_bytes = min(preferred_bytes, self._config.buffer_memory // PIECES)
        most = max(1, int((piece_bytes - HEADER_SIZE) / row_bytes))
        for start in range(0, rows, most):
            yield table.slice(start, most)

    def _column(self, table: pa.Table, role: str, name: str | None) -> pa.ChunkedArray | None:
        return None if name is None else self._named_column(table, role, name)

    def _named_column(self, table: pa.Table, role: str, name: str) -> pa.ChunkedArray:
        if name not in table.column_names:
            raise UserError(
                f"send_arrow: {role}={name!r}: expected one of the columns "
                f"{', '.join(table.column_names)}"
            )
        return table.column(name)

    def _numbers(self, table: pa.Table) -> tuple[pa.Array | None, int | None]:
        """A partition for each row, or one for all; neither: any partition."""
        import pyarrow as pa

        by = self._columns.partition_by
        count = len(self._view.partitions)
        if isinstance(by, int) and not isinstance(by, bool):
            self._check(by, by)
            return None, by
        if by is not None:
            column = self._named_column(table, "partition_by", str(by))
            if pa.types.is_integer(column.type):
                if column.null_count:
                    raise UserError(f"send_arrow: partition_by={by!r}: the column has nulls")
                numbers = column.to_numpy()
                self._check(int(numbers.min()), int(numbers.max()))
                return numbers, None
        elif self._columns.key is not None and not self._config.partitioner_ignore_keys:
            column = self._named_column(table, "key", self._columns.key)
        else:
            return None, None
        unkeyed = 0
        if column.null_count:
            unkeyed = self._intake.next_sticky_partition(self._view, 0)
        if count == 1:
            return None, 0
        return self._partition_column(column, count, unkeyed=unkeyed), None

    def _check(self, lowest: int, highest: int) -> None:
        count = len(self._view.partitions)
        if lowest < 0 or highest >= count:
            raise UserError(
                f"send_arrow: partition_by has {lowest if lowest < 0 else highest}, but topic "
                f"{self._view.name} has partitions 0 to {count - 1}"
            )


def _as_table(table: pa.Table | pa.RecordBatch) -> pa.Table:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    raise UserError(
        f"send_arrow: expected a pyarrow Table or RecordBatch, got {type(table).__name__}"
    )
