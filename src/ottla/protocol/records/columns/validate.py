"""Checks one batch's records with a native kernel, before a broker appends it.

Finds the same errors as `record.validate_records` in a fortieth of the time; the tests compare the
two. Never copies a record.
"""

from __future__ import annotations

import numpy as np

from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.read_kernels import REASONS, check
from ottla.protocol.records.compression import Bytes
from ottla.protocol.records.header import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    read_header,
)
from ottla.protocol.records.record import NewRecord, Summary


def validate_records(section: Bytes, header: BatchHeader, *, dense: bool) -> Summary:
    """As `record.validate_records`, natively."""
    if header.count < 0:
        raise CorruptBatch(f"batch has invalid record count {header.count}", 57)
    data = np.frombuffer(section, dtype=np.uint8)
    fault, position, low, high, high_delta, null_key = check(
        data, header.count, header.base_timestamp, header.last_offset_delta, dense
    )
    if fault:
        raise CorruptBatch(REASONS[fault], position)
    if header.count == 0:
        return Summary(NO_TIMESTAMP, NO_TIMESTAMP, -1, -1)
    return Summary(low, high, high_delta, null_key)


def warm_up() -> None:
    """Load the kernel, or compile it the first time, before a request has to wait for it."""
    one_record = build([NewRecord(b"", b"")])
    validate_records(one_record[HEADER_SIZE:], read_header(one_record), dense=True)
    validate_records(memoryview(one_record)[HEADER_SIZE:], read_header(one_record), dense=True)
