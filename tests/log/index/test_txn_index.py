"""Promises of `ottla.log.index.txn_index`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.index import txn_index
from ottla.log.index.sparse_index import CorruptIndex
from ottla.log.index.txn_index import AbortedTxn, decode, encode, overlapping
from tests.fakes.forgetting_disk import ForgettingDisk

PATH = Path("/d/x.txnindex")
ABORTED = [AbortedTxn(7, 10, 20, 12), AbortedTxn(8, 12, 25, 26)]


@pytest.mark.spec("LOG-91")
def test_an_entry_is_34_bytes_as_kafka_writes_it() -> None:
    content = encode(ABORTED[:1])
    assert len(content) == 34
    assert content.hex(" ") == (
        "00 00 "
        "00 00 00 00 00 00 00 07 "  # producer id
        "00 00 00 00 00 00 00 0a "  # first offset
        "00 00 00 00 00 00 00 14 "  # last offset
        "00 00 00 00 00 00 00 0c"  # last stable offset
    )


def test_entries_are_appended_and_read_back() -> None:
    disk = ForgettingDisk()
    disk.mkdir(PATH.parent)
    assert txn_index.read(disk, PATH) == []
    for entry in ABORTED:
        txn_index.append(disk, PATH, entry)
    assert txn_index.read(disk, PATH) == ABORTED
    txn_index.write(disk, PATH, ABORTED[1:])
    assert txn_index.read(disk, PATH) == ABORTED[1:]


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 33,
        encode(reversed(ABORTED)),
        encode([AbortedTxn(7, 30, 20, 12)]),
        encode([AbortedTxn(7, -1, 20, 12)]),
        encode([AbortedTxn(7, 10, 20, 22)]),
        b"\0\1" + encode(ABORTED)[2:],
    ],
)
def test_an_impossible_index_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptIndex):
        decode(content)


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [(0, 10, []), (0, 11, [7]), (20, 21, [7, 8]), (21, 30, [8]), (26, 30, []), (13, 14, [7, 8])],
)
def test_those_that_touch_what_was_fetched_are_found(
    start: int, end: int, found: list[int]
) -> None:
    assert [txn.producer_id for txn in overlapping(ABORTED, start, end)] == found
