"""Promises of `ottla.log.entries`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.entries import CHUNK_BYTES, entries, last_offset
from ottla.log.slices import FileSlice
from ottla.protocol.records.batch import build
from ottla.protocol.records.corrupt import CorruptBatch
from ottla.protocol.records.record import NewRecord


class InMemory:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.largest_read = 0

    def fileno(self) -> int:
        raise AssertionError("entries are read, never sent")

    def slice(self, position: int, size: int) -> FileSlice:
        return FileSlice(self, position, size)

    def pread(self, size: int, position: int) -> bytes:
        self.largest_read = max(self.largest_read, size)
        return self.content[position : position + size]


def batch(size: int, offset: int = 0) -> bytes:
    return build([NewRecord(b"k", b"v" * size)], base_offset=offset)


sizes = st.lists(
    st.sampled_from([0, 10, 1_000, CHUNK_BYTES - 90, CHUNK_BYTES, 3 * CHUNK_BYTES]), max_size=8
)


@given(sizes)
def test_every_entry_is_found_whole_whatever_its_size(wanted: list[int]) -> None:
    batches = [batch(size, offset) for offset, size in enumerate(wanted)]
    content = b"".join(batches)
    found = list(entries(InMemory(content), 0, len(content)))
    assert [bytes(view) for _, view in found] == batches
    assert [at for at, _ in found] == [sum(map(len, batches[:i])) for i in range(len(batches))]


def test_memory_is_bounded_by_the_largest_entry() -> None:
    content = b"".join(batch(1_000, offset) for offset in range(2_000))
    file = InMemory(content)
    assert sum(1 for _ in entries(file, 0, len(content))) == 2_000
    assert file.largest_read == CHUNK_BYTES


@given(cut=st.integers(1, 100))
def test_a_torn_tail_is_named_by_its_position(cut: int) -> None:
    whole, torn = batch(5), batch(200)[:-cut]
    content = whole + torn
    with pytest.raises(CorruptBatch, match="cut short") as fault:
        list(entries(InMemory(content), 0, len(content)))
    assert fault.value.position == len(whole)


@pytest.mark.parametrize(
    ("at", "value", "position"),
    [(16, b"\x03", 16), (16, b"\xff", 16), (8, b"\x80", 8), (8, b"\0\0\0\x30", 8)],
)
def test_an_impossible_entry_is_named_by_its_first_bad_byte(
    at: int, value: bytes, position: int
) -> None:
    good, bad = batch(0), bytearray(batch(300))
    bad[at : at + len(value)] = value
    content = good + bytes(bad) + batch(0)
    with pytest.raises(CorruptBatch) as fault:
        list(entries(InMemory(content), 0, len(content)))
    assert fault.value.position == len(good) + position


def test_an_entry_is_known_by_its_last_offset() -> None:
    records = [NewRecord(b"k", b"v")] * 3
    assert last_offset(memoryview(build(records, base_offset=7))) == 9
