"""Promises of `ottla.log.stored_batch`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.files import File
from ottla.log.stored_batch import checksum_ok, parse, walk_headers, walk_whole
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import CorruptBatch, build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.record import NewRecord
from tests.fakes.forgetting_disk import ForgettingDisk


def file_of(content: bytes) -> File:
    disk = ForgettingDisk()
    disk.mkdir(Path("/d"))
    disk.replace(Path("/d/f"), content)
    return disk.open_read(Path("/d/f"))


def v2(base: int, *sizes: int) -> bytes:
    return build(
        [NewRecord(b"k", b"v" * size, timestamp=1_000 + base) for size in sizes],
        base_offset=base,
        leader_epoch=4,
    )


V0 = legacy.build([NewRecord(b"key", b"value")], magic=0, base_offset=10)
V1 = legacy.build([NewRecord(b"key", b"value", timestamp=77)], magic=1, base_offset=11)
V1_SET = legacy.build(
    [NewRecord(b"k", b"v" * 50, timestamp=at) for at in (5, 9, 7)],
    magic=1,
    base_offset=12,
    codec=Codec.GZIP,
)


@pytest.mark.spec("REC-01", "REC-02", "REC-03", "REC-08", "REC-09")
def test_entries_of_every_format_follow_each_other_in_one_file() -> None:
    content = V0 + V1 + V1_SET + v2(15, 3, 3)
    assert (len(V0), len(V1)) == (34, 42)
    found = list(walk_headers(file_of(content), 0, len(content)))
    assert [(batch.magic, batch.last_offset, batch.max_timestamp) for batch in found] == [
        (0, 10, -1),
        (1, 11, 77),
        (1, 14, 9),
        (2, 16, 1_015),
    ]
    assert [batch.leader_epoch for batch in found] == [-1, -1, -1, 4]
    whole = list(walk_whole(file_of(content), 0, len(content)))
    assert [batch for batch, _ in whole] == found
    assert b"".join(bytes(part) for _, part in whole) == content
    assert all(checksum_ok(batch, part) for batch, part in whole)


@given(st.lists(st.sampled_from([0, 10, 3_000, 5_000, 300_000]), max_size=12), st.data())
def test_walks_find_every_batch_whatever_its_size(sizes: list[int], data: st.DataObject) -> None:
    batches = [v2(number, size) for number, size in enumerate(sizes)]
    content = b"".join(batches)
    file = file_of(content)
    assert [bytes(part) for _, part in walk_whole(file, 0, len(content))] == batches
    assert [batch.base_offset for batch in walk_headers(file, 0, len(content))] == list(
        range(len(sizes))
    )
    start = data.draw(st.integers(0, len(sizes)))
    position = sum(map(len, batches[:start]))
    assert [bytes(part) for _, part in walk_whole(file, position, len(content))] == batches[start:]


@pytest.mark.spec("REC-05", "REC-16")
@given(st.sampled_from([V0, V1, V1_SET, v2(0, 9)]), st.data())
def test_a_turned_bit_in_what_a_checksum_covers_is_noticed(
    entry: bytes, data: st.DataObject
) -> None:
    covered = 21 if entry[16] == 2 else 16
    at = data.draw(st.integers(covered, len(entry) - 1))
    content = bytearray(entry)
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        batch = parse(bytes(content), 0, 0)
    except CorruptBatch:
        return
    assert not checksum_ok(batch, bytes(content))


@pytest.mark.spec("REC-07")
@pytest.mark.parametrize(
    "bad",
    [
        b"\0" * 100,
        V0[:20],
        V0[:8] + (13).to_bytes(4, "big") + V0[12:],
        V1[:8] + (21).to_bytes(4, "big") + V1[12:],
        v2(0, 9)[:8] + (48).to_bytes(4, "big") + v2(0, 9)[12:],
        v2(0, 9)[:16] + b"\x03" + v2(0, 9)[17:],
        v2(0, 9)[:-1],
        v2(0, 9)[:60],
    ],
)
def test_what_cannot_be_an_entry_stops_the_walk_where_it_is(bad: bytes) -> None:
    good = v2(0, 100)
    for walk in (walk_headers, walk_whole):
        with pytest.raises(CorruptBatch) as error:
            list(walk(file_of(good + bad), 0, len(good + bad)))
        assert error.value.position == len(good)
