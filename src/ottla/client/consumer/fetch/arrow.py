"""Chunks as Arrow: `poll_arrow`. Hot: benchmarks/clients_consumer.py.

Owns the schema of the table: topic and partition in front of the columns that the kernels decode.
Imported only when it is used, because it needs the extra `arrow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from ottla.client.consumer.fetch.chunk import Chunk, corrupt_batch
from ottla.protocol.records.columns import decode
from ottla.protocol.records.header import CorruptBatch

TOPIC: Final = pa.dictionary(pa.int32(), pa.string())
PARTITION_FIELDS: Final = (pa.field("topic", TOPIC), pa.field("partition", pa.int32()))
COLUMN_NAMES: Final = decode.COLUMNS
FEWEST_CACHED: Final = 1 << 14
MOST_CACHED: Final = 1 << 17


@cache
def schema(*, headers: bool) -> pa.Schema:
    """The schema of every table that `poll_arrow` returns."""
    return pa.schema([*PARTITION_FIELDS, *decode.schema(_wanted_columns(headers))])


def batches_of(chunk: Chunk, *, headers: bool, check_crc: bool) -> Iterator[pa.RecordBatch]:
    """The records of a chunk that were not returned yet, as record batches."""
    view, aborted, more = chunk.data, tuple(chunk.aborted), True
    part = chunk.part
    while more:
        try:
            decoded = decode.decode_batches(
                view,
                want=_wanted_columns(headers),
                start_offset=part.offset,
                aborted=aborted,
                check_crc=check_crc,
            )
        except CorruptBatch as fault:
            raise corrupt_batch(part, fault) from None
        view, aborted, more = view[decoded.consumed :], decoded.aborted, decoded.more
        rows = decoded.batch.num_rows
        if rows:
            topic, partition = part.tp
            topics = pa.DictionaryArray.from_arrays(
                _constant_column(0, rows), _name(topic), safe=False
            )
            columns = [topics, _constant_column(partition, rows), *decoded.batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema(headers=headers))


def table_of(batches: Sequence[pa.RecordBatch], *, headers: bool) -> pa.Table:
    return pa.Table.from_batches(batches, schema=schema(headers=headers))


def _constant_column(number: int, rows: int) -> pa.Array:
    """A column of one number: a slice of a cached one, because new memory is expensive."""
    size = 1 << (rows - 1).bit_length()
    if size > MOST_CACHED:
        return pa.array(np.full(rows, number, np.int32))
    return _cached_column(number, max(FEWEST_CACHED, size)).slice(0, rows)


@lru_cache(64)
def _cached_column(number: int, rows: int) -> pa.Array:
    return pa.array(np.full(rows, number, np.int32))


@lru_cache(1024)
def _name(topic: str) -> pa.Array:
    return pa.array([topic], pa.string())


def _wanted_columns(headers: bool) -> tuple[str, ...]:
    return (*COLUMN_NAMES, "headers") if headers else COLUMN_NAMES
