"""Promises of `ottla.log.dump.segment_dump`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.dump.rows import DumpError, DumpOptions, Note, Row
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker
from ottla.protocol.records.record import NewRecord
from tests.log.dump_reader import NAME, items, lines
from tests.log.partition_files import batches_of_every_codec, write_segment

pytestmark = pytest.mark.spec("TOOL-13")


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
    assert lines(tmp_path / "00000000000000000007.log", DumpOptions(print_data_log=True)) == [
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
    deep = items(path, DumpOptions(deep_iteration=True))
    assert sum(isinstance(item, Row) and item.of_record for item in deep) == 25


def test_a_marker_says_how_the_transaction_ended(tmp_path: Path) -> None:
    marker = build_marker(
        EndTxnMarker(ControlType.ABORT, 5), producer_id=3, producer_epoch=1, timestamp=10
    )
    write_segment(tmp_path, [marker])
    line = lines(tmp_path / f"{NAME}.log", DumpOptions(print_data_log=True))[-1]
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
    _, batch, *rest = lines(tmp_path / f"{NAME}.log", DumpOptions(print_data_log=True))
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
    [gap] = [i for i in items(path, DumpOptions(deep_iteration=True)) if isinstance(i, DumpError)]
    assert (gap.text, gap.is_fault) == ("  1 is followed by 5", False)


def test_a_torn_tail_is_counted_and_placed(tmp_path: Path) -> None:
    batches = batches_of_every_codec(5)
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"".join(batches)[:-3])
    position = sum(map(len, batches[:-1]))
    *_, note, fault = items(path)
    assert note == Note(f"Found {len(batches[-1]) - 3} invalid bytes at the end of {path.name}")
    assert isinstance(fault, DumpError) and fault.is_fault
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
    [fault] = [item for item in found if isinstance(item, DumpError)]
    assert fault.text == f"byte {len(first)}: the checksum does not match"


def test_garbage_is_refused_at_its_first_byte(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"not a log at all, but long enough to look at twice, or even three times")
    [fault] = [item for item in items(path) if isinstance(item, DumpError)]
    assert fault.text.startswith("byte 0: ")


def test_reading_can_be_bounded(tmp_path: Path) -> None:
    batches = batches_of_every_codec(5)
    write_segment(tmp_path, batches)
    bound = len(batches[0]) + len(batches[1]) + 10
    found = items(tmp_path / f"{NAME}.log", DumpOptions(max_bytes=bound))
    assert sum(isinstance(item, Row) for item in found) == 2
    assert not any(isinstance(item, DumpError) for item in found)
