"""Takes records out of the buffer at the end of a poll.

Owns the last steps to the user: the limit, the interceptors, the metrics. Runs on the caller's
thread, which need not be the loop's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.core import Core
from ottla.client.consumer.record import AnyRecord
from ottla.model.errors import KafkaError, UserError

if TYPE_CHECKING:
    import pyarrow as pa


def take(core: Core, most: int | None = None) -> list[AnyRecord]:
    """Take buffered records; positions move past them."""
    if most is not None and most < 1:
        raise UserError(f"max_records={most}: expected 1 or more")
    records = core.buffer.take(most or core.config.max_poll_records)
    core.poll_interval.on_poll()
    core.records += len(records)
    return core.interceptors.call_on_consume(records) if core.interceptors and records else records


def take_arrow(core: Core, *, headers: bool) -> pa.Table:
    """Take all buffered chunks, as one table."""
    try:
        from ottla.client.consumer.fetch import arrow
    except ImportError as missing:
        raise UserError(f"poll_arrow() needs {missing.name}: pip install 'ottla[arrow]'") from None
    core.poll_interval.on_poll()
    core.fetcher.reads_columns = True
    batches: list[pa.RecordBatch] = []
    chunks = core.buffer.take_chunks()
    for index, chunk in enumerate(chunks):
        try:
            batches += arrow.batches_of(chunk, headers=headers, check_crc=core.config.check_crcs)
        except KafkaError:
            core.buffer.put_back(chunks[index:])
            if not batches:
                core.buffer.broken(chunk)
                raise
            break
        core.buffer.done(chunk)
    if chunks:
        core.buffer.drained()  # once: waking the loop costs the interpreter's lock
    table = arrow.table_of(batches, headers=headers)
    core.records += table.num_rows
    return table
