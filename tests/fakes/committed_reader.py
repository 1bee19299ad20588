"""What a reader of committed data takes from one fetched partition, as a client works it out.

Owns the walk over batches with the list of aborted transactions beside it. Never fetches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.protocol.records.batch import walk
from ottla.protocol.records.control import ControlType, control_type
from ottla.protocol.records.record import Record, read_records


def committed_values(part: Any) -> list[bytes]:
    """The values that count in a partition of a decoded Fetch reply."""
    aborted = [(one.producer_id, one.first_offset) for one in part.aborted_transactions or ()]
    return [record.value or b"" for record in committed(part.records or b"", aborted)]


def committed(data: bytes, aborted: Iterable[tuple[int, int]]) -> list[Record]:
    """The records of whole batches, without those of aborted transactions and without markers."""
    view = memoryview(data)
    coming = sorted(aborted, key=lambda one: one[1])
    dropped: set[int] = set()
    kept: list[Record] = []
    for at, header in walk(view):
        while coming and coming[0][1] <= header.last_offset:
            dropped.add(coming.pop(0)[0])
        records = list(read_records(view[at : at + header.size]))
        if header.is_control:
            if control_type(records[0].key) == ControlType.ABORT:
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            kept += records
    return kept
