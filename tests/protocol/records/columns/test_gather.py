"""Only arrays that are wanted are filled, and a fault costs nothing that came before it."""

from __future__ import annotations

import pytest

from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.arrays import fresh
from ottla.protocol.records.columns.gather import NAMES, ReadRequest, gather, headers_of
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import HEADER, CorruptBatch
from ottla.protocol.records.record import NewRecord
from tests.protocol.records.columns.batches import numbered
from tests.protocol.records.samples import FAULTS, header_for


def test_a_column_that_is_not_wanted_takes_no_memory() -> None:
    found = gather(numbered(1000, size=100), ReadRequest(frozenset({"offset"})), fresh)
    assert found.rows == 1000
    assert found.sink.offset.size == 1000
    assert found.sink.value.data.size == found.sink.key.ends.size == 0
    assert found.sink.headers_at.size == 0


def test_headers_know_whose_they_are() -> None:
    records = [
        NewRecord(None, None, (("a", b"1"), ("b", None))),
        NewRecord(None, None),
        NewRecord(None, None, (("", b""),)),
    ]
    headers = headers_of(gather(build(records), ReadRequest(frozenset(NAMES)), fresh))
    assert headers.ends.tolist() == [0, 2, 2, 3]
    assert headers.keys.data.tobytes() == b"ab"
    assert headers.keys.ends.tolist() == [0, 1, 2, 2]
    assert (headers.values.data.tobytes(), headers.value_nulls) == (b"1", 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_a_record_is_found_and_spares_the_batches_before(fault: str) -> None:
    count, section = FAULTS[fault]
    header = header_for(count)._replace(length=49 + len(section), base_offset=1)
    bad = _packed(header, section)
    ask = ReadRequest(frozenset(NAMES), check_crc=False)
    with pytest.raises(CorruptBatch):
        gather(bad, ask, fresh)
    found = gather(numbered(1) + bad, ask, fresh)
    assert (found.rows, found.selection.next_offset, found.selection.more) == (1, 1, True)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_flipped_bit_is_found_wherever_it_is_and_spares_the_batches_before(
    bad: int, codec: Codec
) -> None:
    batches = [numbered(5, at=0, codec=codec), numbered(5, at=5), numbered(5, at=10)]
    flipped = bytearray(batches[bad])
    flipped[-1] ^= 1
    batches[bad] = bytes(flipped)
    ask = ReadRequest(frozenset(NAMES))
    if bad == 0:
        with pytest.raises(CorruptBatch, match="checksum"):
            gather(b"".join(batches), ask, fresh)
        return
    found = gather(b"".join(batches), ask, fresh)
    assert (found.rows, found.selection.next_offset, found.selection.more) == (
        5 * bad,
        5 * bad,
        True,
    )
    rest = b"".join(batches)[found.selection.consumed :]
    with pytest.raises(CorruptBatch, match="checksum"):
        gather(rest, ask, fresh)


def _packed(header: tuple[int, ...], section: bytes) -> bytes:
    return HEADER.pack(*header) + section
