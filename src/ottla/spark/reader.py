"""Reading one span of a partition as Arrow batches: what a task does.

Owns: the way from fetched bytes to the rows Spark expects. Never: decides what is read; it is
handed a span, and the times outside of which whole batches need not be decoded.

Bytes go from the socket into Arrow columns in one pass. Hot: benchmarks/spark_io.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.config.client import ConsumerConfig
from ottla.spark.connection import shared_connection
from ottla.spark.options import SourceOptions
from ottla.spark.plan import Span
from ottla.spark.rows import DECODED, shape

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.span_fetcher import Chunk

FIRST_MS: Final = -(2**63)
LAST_MS: Final = 2**63 - 1
BATCH_BYTES: Final = 32 << 20
"""Of records in one Arrow batch: what Spark holds of a task at a time, on both sides."""


@dataclass(frozen=True)
class ReadRequest:
    """A span, and the half-open range of times of what is wanted from it."""

    span: Span
    start_ms: int = FIRST_MS
    end_ms: int = LAST_MS


def read(
    options: SourceOptions, request: ReadRequest, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The records of a span, as Spark wants them."""
    from ottla.spark.span_fetcher import Fetcher  # only tasks fetch, as they decode

    config = options.config()
    fetcher = Fetcher(
        shared_connection(ConsumerConfig, options.client),
        request.span,
        read_committed=config.isolation_level == "read_committed",
        fail_on_data_loss=options.fail_on_data_loss,
        timeout_ms=options.poll_timeout_ms,
    )
    columns = tuple(DECODED[name] for name in schema.names if name in DECODED) or ("offset",)
    for chunk in fetcher.chunks():
        yield from _decode(chunk, columns, request, schema, config.check_crcs)


def _decode(
    chunk: Chunk,
    columns: tuple[str, ...],
    request: ReadRequest,
    schema: pa.Schema,
    check_crc: bool,
) -> Iterator[pa.RecordBatch]:
    # Only tasks decode; Spark's planning processes must not wait for kernels to load.
    from ottla.protocol.records.columns.decode import decode_batches

    rest, offset, aborted = chunk.fetched.records, chunk.start, chunk.fetched.aborted
    while True:
        decoded = decode_batches(
            rest,
            want=columns,
            start_offset=offset,
            end_offset=request.span.end,
            start_time=request.start_ms,
            end_time=request.end_ms,
            aborted=aborted,
            check_crc=check_crc,
            max_bytes=BATCH_BYTES,
        )
        if decoded.batch.num_rows:
            yield shape(decoded.batch, request.span.partition, schema)
        offset, aborted = decoded.next_offset, decoded.aborted
        if not decoded.more:
            return
        rest = rest[decoded.consumed :]
