"""Promises of `ottla.log.dump.index_dump`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.dump.rows import DumpError, DumpOptions, Note, Row
from ottla.log.index import txn_index
from ottla.log.index.txn_index import AbortedTxn
from tests.log.dump_reader import NAME, items, lines
from tests.log.partition_files import batches_of_every_codec, write_segment

pytestmark = pytest.mark.spec("TOOL-13")


def test_indexes_agree_with_the_log_they_belong_to(tmp_path: Path) -> None:
    batches = batches_of_every_codec(20)
    write_segment(tmp_path, batches, interval_bytes=0)
    offsets = items(tmp_path / f"{NAME}.index")
    times = items(tmp_path / f"{NAME}.timeindex")
    assert [row.fields for row in offsets if isinstance(row, Row)] == [
        {"offset": 20 * n + 19, "position": sum(map(len, batches[:n]))} for n in range(1, 5)
    ]
    assert {"timestamp": 1_700_000_000_099, "offset": 99} in [
        row.fields for row in times if isinstance(row, Row)
    ]
    assert not any(isinstance(item, DumpError) for item in offsets + times)


def test_verifying_an_index_shows_nothing_but_what_is_wrong(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(20), interval_bytes=0)
    index = tmp_path / f"{NAME}.index"
    assert items(index, DumpOptions(verify_index_only=True)) == []
    content = bytearray(index.read_bytes())
    content[3] += 1
    index.write_bytes(content)
    [mismatch] = items(index, DumpOptions(verify_index_only=True))
    assert isinstance(mismatch, DumpError) and mismatch.is_fault
    assert mismatch.text == "  Index offset: 40, log offset: 39"


def test_a_time_index_that_lies_is_found_out(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(20), interval_bytes=0)
    index = tmp_path / f"{NAME}.timeindex"
    content = bytearray(index.read_bytes())
    content[7] += 1  # the first entry's time
    content[23] -= 1  # the second entry's offset
    content[36:44] = content[24:32]  # the fourth entry's time is that of the third
    index.write_bytes(content)
    headings = {item.heading for item in items(index) if isinstance(item, DumpError)}
    assert headings == {
        f"Found timestamp mismatch in :{index}",
        f"Found out of order timestamp in :{index}",
        "The following indexed offsets are not found in the log.",
    }


def test_an_index_that_kafka_preallocated_ends_where_the_zeros_begin(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(20), interval_bytes=0)
    index = tmp_path / f"{NAME}.index"
    plain = items(index)
    index.write_bytes(index.read_bytes() + bytes(800))
    assert items(index) == plain
    index.write_bytes(bytes(800))
    assert items(index) == [Note(f"{index} is empty.")]


def test_the_sanity_check_judges_an_index_by_itself(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(20), interval_bytes=0)
    (tmp_path / f"{NAME}.log").unlink()
    for kind in ("index", "timeindex"):
        index = tmp_path / f"{NAME}.{kind}"
        options = DumpOptions(index_sanity_check=True)
        assert items(index, options) == [Note(f"{index} passed sanity check.")]
        index.write_bytes(index.read_bytes()[:-1])
        [fault] = items(index, options)
        assert isinstance(fault, DumpError) and "truncated" in fault.text


def test_aborted_transactions_are_told(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(txn_index.encode([AbortedTxn(7, 1, 5, 6)]))
    assert lines(path) == [
        "version: 0 producerId: 7 firstOffset: 1 lastOffset: 5 lastStableOffset: 6"
    ]
    path.write_bytes(path.read_bytes() + b"\0")
    assert lines(path)[-1] == "byte 34: entry is truncated"
