"""Fetched bytes for tests: batches of numbered records."""

from __future__ import annotations

from typing import Any

from ottla.protocol.records.batch import build
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import Record

TIME = 1_700_000_000_000


def batch(first: int, count: int, **header: Any) -> bytes:
    """Records from `first` on, each with its offset as value."""
    records = [
        Record(offset, TIME + offset, f"k{offset}".encode(), str(offset).encode())
        for offset in range(first, first + count)
    ]
    return build(records, base_offset=first, **{"leader_epoch": 0, **header})


def large(offset: int, size: int) -> bytes:
    """One record of that size."""
    return build([Record(offset, TIME, None, bytes(size))], base_offset=offset, leader_epoch=0)


def transactional(first: int, count: int, producer_id: int) -> bytes:
    return batch(
        first, count, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return build_marker(
        EndTxnMarker(kind, 0),
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=TIME,
        base_offset=offset,
        leader_epoch=0,
    )


def view(*batches: bytes) -> memoryview:
    return memoryview(b"".join(batches))
