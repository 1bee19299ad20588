"""Promises of `ottla.log.dump` and the readers behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log import producer_snapshot, txn_index
from ottla.log.dump import dump
from ottla.log.dump_rows import Complaint, Item, Note, Row, Wishes, line_of
from ottla.log.files import RealDisk
from ottla.log.producer_snapshot import ProducerEntry
from ottla.log.txn_index import AbortedTxn
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import NewRecord
from tests.log.partition_files import batches_of_every_codec, write_segment

pytestmark = pytest.mark.spec("TOOL-13")

NAME = "00000000000000000000"


PLAIN = Wishes()


def items(path: Path, wishes: Wishes = PLAIN) -> list[Item]:
    return list(dump(path, RealDisk(), wishes))


def lines(path: Path, wishes: Wishes = PLAIN) -> list[str]:
    return [
        item.text if isinstance(item, Note | Complaint) else line_of(item)
        for item in items(path, wishes)
    ]


@pytest.mark.spec("TOOL-14")
def test_a_batch_and_its_records_are_told_in_kafkas_words(tmp_path: Path) -> None:
    batch = build(
        [
            NewRecord(b"k", b"v\xc3\xa9", (("h1", b""), ("h2", None)), 1_000),
            NewRecord(None, None, (), 2_000),
        ],
        base_offset=7,
        leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=2**31 - 1,
        codec=Codec.GZIP,
    )
    write_segment(tmp_path, [batch], base_offset=7)
    crc = int.from_bytes(batch[17:21], "big")
    assert lines(tmp_path / "00000000000000000007.log", Wishes(print_data_log=True)) == [
        "Log starting offset: 7",
        "baseOffset: 7 lastOffset: 8 count: 2 baseSequence: 2147483647 lastSequence: 0 "
        "producerId: 9 producerEpoch: 2 partitionLeaderEpoch: 4 isTransactional: false "
        "isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 2000 "
        f"size: {len(batch)} magic: 2 compresscodec: gzip crc: {crc} isvalid: true",
        "| offset: 7 CreateTime: 1000 keySize: 1 valueSize: 3 sequence: 2147483647 "
        "headerKeys: [h1,h2] key: k payload: vé",
        "| offset: 8 CreateTime: 2000 keySize: -1 valueSize: -1 sequence: 0 headerKeys: []",
    ]


def test_records_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(5))
    path = tmp_path / f"{NAME}.log"
    assert sum(isinstance(item, Row) for item in items(path)) == 5
    deep = items(path, Wishes(deep_iteration=True))
    assert sum(isinstance(item, Row) and item.of_record for item in deep) == 25


def test_a_marker_says_how_the_transaction_ended(tmp_path: Path) -> None:
    marker = build_marker(
        EndTxnMarker(ControlType.ABORT, 5), producer_id=3, producer_epoch=1, timestamp=10
    )
    write_segment(tmp_path, [marker])
    line = lines(tmp_path / f"{NAME}.log", Wishes(print_data_log=True))[-1]
    assert line.endswith("headerKeys: [] endTxnMarker: ABORT coordinatorEpoch: 5")


def test_a_delete_horizon_is_shown(tmp_path: Path) -> None:
    batch = build([NewRecord(b"k", None, (), 5)], delete_horizon_ms=77)
    write_segment(tmp_path, [batch])
    assert "deleteHorizonMs: OptionalLong[77] " in lines(tmp_path / f"{NAME}.log")[1]


@pytest.mark.parametrize(("magic", "time"), [(0, "NoTimestampType: -1"), (1, "CreateTime: 1000")])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_older_formats_are_told_too(tmp_path: Path, magic: int, time: str, codec: Codec) -> None:
    entry = legacy.build([NewRecord(b"k", b"v", (), 1_000)] * 2, magic=magic, codec=codec)
    (tmp_path / f"{NAME}.log").write_bytes(entry)
    _, batch, *rest = lines(tmp_path / f"{NAME}.log", Wishes(print_data_log=True))
    if codec is Codec.NONE:
        assert batch.startswith(f"offset: 0 position: 0 {time} size: ")
    else:
        assert batch.startswith(f"offset: 1 position: 0 {time} size: ")
    assert f" magic: {magic} compresscodec: {codec.name.lower()} crc: " in batch
    assert batch.endswith(" isvalid: true")
    assert rest[0].startswith(f"| offset: 0 {time} keySize: 1 valueSize: 1 isValid: true crc: ")
    assert rest[0].endswith(" key: k payload: v")


def test_gaps_between_offsets_are_mentioned_but_are_no_fault(tmp_path: Path) -> None:
    batches = [build([NewRecord(b"k", b"v")], base_offset=offset) for offset in (0, 1, 5)]
    write_segment(tmp_path, batches)
    path = tmp_path / f"{NAME}.log"
    [gap] = [i for i in items(path, Wishes(deep_iteration=True)) if isinstance(i, Complaint)]
    assert (gap.text, gap.is_fault) == ("  1 is followed by 5", False)


def test_a_torn_tail_is_counted_and_placed(tmp_path: Path) -> None:
    batches = batches_of_every_codec(5)
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"".join(batches)[:-3])
    position = sum(map(len, batches[:-1]))
    *_, note, fault = items(path)
    assert note == Note(f"Found {len(batches[-1]) - 3} invalid bytes at the end of {path.name}")
    assert isinstance(fault, Complaint) and fault.is_fault
    assert fault.text.startswith(f"byte {position}: ")


def test_a_flipped_bit_shows_as_an_invalid_batch_and_its_position(tmp_path: Path) -> None:
    first, *rest = batches_of_every_codec(5)
    spoiled = bytearray(rest[0])
    spoiled[40] ^= 1
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(first + bytes(spoiled) + b"".join(rest[1:]))
    found = items(path)
    assert [row.fields["isvalid"] for row in found if isinstance(row, Row)] == [
        True, False, True, True, True,
    ]  # fmt: skip
    [fault] = [item for item in found if isinstance(item, Complaint)]
    assert fault.text == f"byte {len(first)}: the checksum does not match"


def test_garbage_is_refused_at_its_first_byte(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"not a log at all, but long enough to look at twice, or even three times")
    [fault] = [item for item in items(path) if isinstance(item, Complaint)]
    assert fault.text.startswith("byte 0: ")


def test_reading_can_be_bounded(tmp_path: Path) -> None:
    batches = batches_of_every_codec(5)
    write_segment(tmp_path, batches)
    bound = len(batches[0]) + len(batches[1]) + 10
    found = items(tmp_path / f"{NAME}.log", Wishes(max_bytes=bound))
    assert sum(isinstance(item, Row) for item in found) == 2
    assert not any(isinstance(item, Complaint) for item in found)


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
    assert not any(isinstance(item, Complaint) for item in offsets + times)


def test_verifying_an_index_shows_nothing_but_what_is_wrong(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(20), interval_bytes=0)
    index = tmp_path / f"{NAME}.index"
    assert items(index, Wishes(verify_index_only=True)) == []
    content = bytearray(index.read_bytes())
    content[3] += 1
    index.write_bytes(content)
    [mismatch] = items(index, Wishes(verify_index_only=True))
    assert isinstance(mismatch, Complaint) and mismatch.is_fault
    assert mismatch.text == "  Index offset: 40, log offset: 39"


def test_a_time_index_that_lies_is_found_out(tmp_path: Path) -> None:
    write_segment(tmp_path, batches_of_every_codec(20), interval_bytes=0)
    index = tmp_path / f"{NAME}.timeindex"
    content = bytearray(index.read_bytes())
    content[7] += 1  # the first entry's time
    content[23] -= 1  # the second entry's offset
    content[36:44] = content[24:32]  # the fourth entry's time is that of the third
    index.write_bytes(content)
    headings = {item.heading for item in items(index) if isinstance(item, Complaint)}
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
        wishes = Wishes(index_sanity_check=True)
        assert items(index, wishes) == [Note(f"{index} passed sanity check.")]
        index.write_bytes(index.read_bytes()[:-1])
        [fault] = items(index, wishes)
        assert isinstance(fault, Complaint) and "cut short" in fault.text


def test_aborted_transactions_are_told(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(txn_index.encode([AbortedTxn(7, 1, 5, 6)]))
    assert lines(path) == [
        "version: 0 producerId: 7 firstOffset: 1 lastOffset: 5 lastStableOffset: 6"
    ]
    path.write_bytes(path.read_bytes() + b"\0")
    assert lines(path)[-1] == "byte 34: entry is cut short"


def test_producers_are_told_from_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000009.snapshot"
    entries = [ProducerEntry(7, 1, 3, 8, 4, 99, 2, -1), ProducerEntry(8, 0, -1, -1, 0, 50, 1, 6)]
    path.write_bytes(producer_snapshot.encode(entries))
    assert lines(path) == [
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: 2 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 99 firstSequence: 2147483647 "
        "lastSequence: 3 lastOffset: 8 offsetDelta: 4 timestamp: 99",
        "producerId: 8 producerEpoch: 0 coordinatorEpoch: 1 "
        "currentTxnFirstOffset: OptionalLong[6] lastTimestamp: 50",
    ]
    path.write_bytes(path.read_bytes()[:-1])
    assert "byte 0: snapshot fails its checksum" in lines(path)
