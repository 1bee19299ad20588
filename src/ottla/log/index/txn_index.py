"""The aborted transactions that end in a segment: the `.txnindex` file.

Owns entries of 34 bytes: version, producer id, first offset, last offset (the marker's) and the
last stable offset once the transaction had ended. A reader of committed data is handed the
entries that touch what it fetched, and drops those producers' records.

A segment without aborted transactions has no such file, or an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from ottla.log.files import Disk
from ottla.log.index.sparse_index import CorruptIndex
from ottla.model.ids import Offset

ENTRY: Final = Struct(">hqqqq")
VERSION: Final = 0


class AbortedTxn(NamedTuple):
    """One producer's records from `first_offset` up to its abort marker at `last_offset`."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


def encode(aborted: Iterable[AbortedTxn]) -> bytes:
    return b"".join(ENTRY.pack(VERSION, *txn) for txn in aborted)


def decode(content: bytes) -> list[AbortedTxn]:
    """CorruptIndex unless markers rise and every entry is possible."""
    if len(content) % ENTRY.size:
        raise CorruptIndex(f"size of {len(content)} bytes is not a multiple of the entry size")
    transactions: list[AbortedTxn] = []
    last_marker = -1
    for version, *fields in ENTRY.iter_unpack(content):
        txn = AbortedTxn(*fields)
        possible = last_marker < txn.last_offset and 0 <= txn.first_offset <= txn.last_offset
        if version != VERSION or not possible or txn.last_stable_offset > txn.last_offset + 1:
            raise CorruptIndex(f"invalid entry {txn}")
        last_marker = txn.last_offset
        transactions.append(txn)
    return transactions


def read(disk: Disk, path: Path) -> list[AbortedTxn]:
    """The entries of a file; none where there is no file."""
    return decode(disk.read(path)) if disk.exists(path) else []


def append(disk: Disk, path: Path, txn: AbortedTxn) -> None:
    """Add one. Aborts are rare: the file is opened for each."""
    file = disk.open_append(path)
    file.append([encode([txn])])
    file.close()


def write(disk: Disk, path: Path, aborted: Iterable[AbortedTxn], *, sync: bool = False) -> None:
    """Make the file hold just these."""
    disk.replace(path, encode(aborted), sync=sync)


def overlapping(aborted: Iterable[AbortedTxn], start: Offset, end: Offset) -> list[AbortedTxn]:
    """Those with a record in [start, end)."""
    return [txn for txn in aborted if txn.last_offset >= start and txn.first_offset < end]
