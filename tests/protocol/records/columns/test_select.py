"""Headers alone decide which batches are read: bounds, transactions, checksums."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.gather import EVERYTHING
from ottla.protocol.records.columns.read_kernels import BASE_OFFSET, Span
from ottla.protocol.records.columns.select import Aborted, Selection, Selector
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.header import HEADER, BatchHeader, CorruptBatch, read_header
from ottla.protocol.records.record import NewRecord, Record
from tests.protocol.records.columns.batches import numbered

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def select(
    buffer: bytes, span: Span = EVERYTHING, aborted: Aborted = (), max_bytes: int = 1 << 20
) -> Selection:
    return Selector(buffer, span, aborted).run(check_crc=True, max_bytes=max_bytes)


def bases(selection: Selection) -> list[int]:
    return [int(offset) for offset in selection.batches[:, BASE_OFFSET]]


def sent(offset: int, producer: int, *, transactional: bool = True) -> bytes:
    return build(
        [NewRecord(b"k", b"v")],
        base_offset=offset, producer_id=producer, producer_epoch=0, base_sequence=0,
        transactional=transactional,
    )  # fmt: skip


def ended(offset: int, producer: int, how: ControlType) -> bytes:
    return build_marker(
        EndTxnMarker(how, 0),
        producer_id=producer, producer_epoch=0, timestamp=1, base_offset=offset,
    )  # fmt: skip


@pytest.mark.spec("TXN-47")
def test_only_what_an_aborted_transaction_wrote_is_left_out() -> None:
    log = b"".join([
        sent(0, 7), sent(1, 8), sent(2, 7, transactional=False), sent(3, 7),
        ended(4, 7, ABORT), sent(5, 7), ended(6, 8, COMMIT), ended(7, 7, COMMIT),
    ])  # fmt: skip
    assert bases(select(log, aborted=((7, 0),))) == [1, 2, 5]
    assert bases(select(log)) == [0, 1, 2, 3, 5]


@pytest.mark.spec("TXN-47")
def test_a_producer_may_abort_twice_and_commit_between() -> None:
    log = b"".join([
        sent(0, 7), ended(1, 7, ABORT), sent(2, 7), ended(3, 7, COMMIT),
        sent(4, 7), ended(5, 7, ABORT), sent(6, 7), ended(7, 7, COMMIT),
    ])  # fmt: skip
    assert bases(select(log, aborted=((7, 4), (7, 0)))) == [2, 6]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bytes], list[int], Aborted]:
    """A log of transactions of a few producers, the offsets that count, and what was aborted."""
    batches: list[bytes] = []
    open_since: dict[int, list[int]] = {}
    committed: list[int] = []
    aborted: list[tuple[int, int]] = []
    for step in draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from("ssac")), max_size=20)):
        producer, what = step
        offset = len(batches)
        if what == "s":
            open_since.setdefault(producer, []).append(offset)
            batches.append(sent(offset, producer))
        elif producer in open_since:
            written = open_since.pop(producer)
            batches.append(ended(offset, producer, ABORT if what == "a" else COMMIT))
            if what == "a":
                aborted.append((producer, written[0]))
            else:
                committed += written
    for written in open_since.values():  # beyond the last stable offset: never handed out
        committed += written
    return batches, sorted(committed), tuple(aborted)


@pytest.mark.spec("TXN-47")
@given(histories(), st.integers(1, 40))
def test_committed_records_are_the_same_however_the_buffer_is_split(
    history: tuple[list[bytes], list[int], Aborted], limit: int
) -> None:
    batches, committed, aborted = history
    buffer, found = b"".join(batches), []
    while True:
        part = select(buffer, aborted=aborted, max_bytes=limit)
        found += bases(part)
        buffer, aborted = buffer[part.consumed :], part.aborted
        if not part.more:
            break
    assert found == committed


@pytest.mark.spec("REC-19")
def test_whole_batches_are_skipped_by_offset_and_by_time() -> None:
    log = b"".join(numbered(10, at=at) for at in range(0, 50, 10))
    low, high = -(2**63), 2**63 - 1
    assert bases(select(log, Span(15, 30, low, high))) == [10, 20]
    assert bases(select(log, Span(0, high, 1025, high))) == [20, 30, 40]
    late = build([NewRecord(None, None, timestamp=9), NewRecord(None, None, timestamp=1)])
    assert bases(select(late, Span(0, high, low, 5))) == [0], "its last record may be early"
    stamped = build([NewRecord(None, None, timestamp=1)], timestamp_type=1, max_timestamp=9)
    assert bases(select(stamped, Span(0, high, low, 5))) == []


def test_a_reader_of_a_range_is_done_at_its_end() -> None:
    log = b"".join(numbered(10, at=at) for at in range(0, 50, 10))
    found = select(log, Span(0, 25, -(2**63), 2**63 - 1))
    assert (found.next_offset, found.more) == (25, False)
    assert bases(found) == [0, 10, 20]


def with_header(batch: bytes, **fields: int) -> bytes:
    header = BatchHeader._make(HEADER.unpack_from(batch))._replace(**fields)
    return HEADER.pack(*header) + batch[HEADER.size :]


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": -1},
        {"base_offset": 2**63 - 1},
        {"last_offset_delta": -2},
        {"count": -1},
        {"count": 2**31 - 1},
        {"attributes": 5},
        {"attributes": 7},
        {"length": 48},
        {"length": -1},
        {"magic": 9},
        {"magic": -1},
    ],
)
def test_impossible_headers_are_refused(fields: dict[str, int]) -> None:
    batch = with_header(numbered(3), **fields)
    with pytest.raises(CorruptBatch):
        Selector(batch, EVERYTHING, ()).run(check_crc=False, max_bytes=1 << 20)


@pytest.mark.spec("REC-01", "REC-07")
@pytest.mark.parametrize("offset", [-1, 2**63 - 1])
def test_impossible_offsets_of_old_messages_are_refused(offset: int) -> None:
    with pytest.raises(CorruptBatch, match="invalid offsets"):
        select(legacy.build([Record(offset, 1, b"k", b"v")], magic=1))


def test_what_inflates_beyond_all_measure_is_refused_not_tried() -> None:
    bomb = build([NewRecord(None, bytes(80 * 1024 * 1024))], codec=Codec.ZSTD)
    assert len(bomb) < 20_000
    with pytest.raises(CorruptBatch, match="decompress"):
        select(bomb, max_bytes=1 << 30)


def test_many_inflated_batches_come_a_few_at_a_time() -> None:
    batch = build([NewRecord(None, bytes(1 << 20))] * 4, codec=Codec.ZSTD)
    found = select(batch * 10, max_bytes=10 << 20)
    assert len(found.batches) == 2
    assert found.more
    assert found.consumed == 2 * read_header(batch).size
