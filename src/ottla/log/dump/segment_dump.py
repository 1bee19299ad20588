"""A `.log` file as rows: one for each batch and, when asked, one for each record below it.

Owns: how a batch and a record are dumped, and where a file stops being a log. Never: goes on past
an entry that cannot be one; what follows a bad length is not a batch but a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ottla.log.dump.rows import (
    DumpError,
    DumpOptions,
    Item,
    Note,
    Row,
    Uncertain,
    bad_byte,
    base_offset,
)
from ottla.log.files import Disk
from ottla.log.stored_batch import StoredBatch, checksum_ok, walk_whole
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import BatchHeader
from ottla.protocol.records.compression import Codec, decompress
from ottla.protocol.records.control import control_type, decode_marker
from ottla.protocol.records.header import MAX_SEQUENCE, CorruptBatch
from ottla.protocol.records.legacy import LegacyEntry
from ottla.protocol.records.record import MAX_INFLATED_BYTES, Record, read_records

_CRC: Final = slice(12, 16)  # of a message in the older formats
_CONTROL_TYPES: Final = {
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


class _DumpedRecord(NamedTuple):
    """One record, and the fields printed of it besides key and value."""

    record: Record
    fields: dict[str, object]


def dump_log(path: Path, disk: Disk, options: DumpOptions) -> Iterator[Item]:
    yield Note(f"Log starting offset: {base_offset(path)}")
    size = disk.file_size(path)
    end = size if options.max_bytes is None else min(size, options.max_bytes)
    position, previous = 0, None
    try:
        for batch, content in walk_whole(disk.open_read(path), 0, end):
            position = batch.position
            is_valid = checksum_ok(batch, content)
            yield Row(_batch_fields(batch, content, is_valid))
            if not is_valid:
                yield bad_byte(path, position, "the checksum does not match")
            for dumped in _records(batch, content) if options.deep else ():
                offset = dumped.record.offset
                if previous is not None and offset != previous + 1:
                    yield _gap(path, previous, offset)
                previous = offset
                yield _record_row(dumped, options, is_control=_is_control(batch))
            position = batch.next_position
    except CorruptBatch as fault:
        if options.max_bytes is None:
            yield Note(f"Found {size - position} invalid bytes at the end of {path.name}")
            yield bad_byte(path, position, fault.reason)


def timestamps(batch: StoredBatch, content: memoryview) -> Iterator[int]:
    """The time of each record of a batch."""
    return (dumped.record.timestamp for dumped in _records(batch, content))


def _is_control(batch: StoredBatch) -> bool:
    return batch.header is not None and batch.header.is_control


def _gap(path: Path, previous: int, offset: int) -> DumpError:
    return DumpError(
        f"Non-consecutive offsets in {path.absolute()}",
        f"  {previous} is followed by {offset}",
        is_fault=False,
    )


def _batch_fields(batch: StoredBatch, content: memoryview, is_valid: bool) -> dict[str, object]:
    header = batch.header
    if header is None:
        entry = next(legacy.entries(content))
        return {
            "offset": entry.offset,
            "position": batch.position,
            _timestamp_name(batch.magic, entry.timestamp_type): entry.timestamp,
            "size": batch.size,
            "magic": batch.magic,
            "compresscodec": entry.codec.name.lower(),
            "crc": int.from_bytes(content[_CRC], "big"),
            "isvalid": is_valid,
        }
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": Uncertain(header.base_timestamp if header.has_delete_horizon else None),
        "position": batch.position,
        _timestamp_name(batch.magic, header.timestamp_type): header.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": header.codec.name.lower(),
        "crc": header.crc,
        "isvalid": is_valid,
    }


def _timestamp_name(magic: int, timestamp_type: int) -> str:
    if magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if timestamp_type else "CreateTime"


def _records(batch: StoredBatch, content: memoryview) -> Iterator[_DumpedRecord]:
    if batch.header is None:
        return _old_records(next(legacy.entries(content)), content)
    return _new_records(batch.header, content)


def _new_records(header: BatchHeader, content: memoryview) -> Iterator[_DumpedRecord]:
    for record in read_records(content):
        fields = _common_fields(record, _timestamp_name(2, header.timestamp_type))
        delta = record.offset - header.base_offset
        sequence = header.base_sequence
        fields["sequence"] = -1 if sequence < 0 else (sequence + delta) & MAX_SEQUENCE
        fields["headerKeys"] = [key for key, _ in record.headers]
        if header.is_control:
            fields |= _control_fields(record)
        yield _DumpedRecord(record, fields)


def _old_records(entry: LegacyEntry, content: memoryview) -> Iterator[_DumpedRecord]:
    name = _timestamp_name(entry.magic, entry.timestamp_type)
    messages = _messages(entry, content)
    for record, (is_valid, crc) in zip(legacy.records(entry), messages, strict=True):
        fields = _common_fields(record, name)
        yield _DumpedRecord(record, fields | {"isValid": is_valid, "crc": crc})


def _messages(entry: LegacyEntry, content: memoryview) -> Iterator[tuple[bool, int]]:
    """Checksum of each message of an entry, and whether it holds."""
    if entry.codec is Codec.NONE:
        yield entry.crc_ok, int.from_bytes(content[_CRC], "big")
        return
    inner = decompress(
        entry.codec, entry.value or b"", MAX_INFLATED_BYTES, old_lz4=entry.magic == 0
    )
    for message in legacy.entries(inner):
        yield message.crc_ok, int.from_bytes(inner[message.position :][_CRC], "big")


def _common_fields(record: Record, timestamp_name: str) -> dict[str, object]:
    return {
        "offset": record.offset,
        timestamp_name: record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
    }


def _control_fields(record: Record) -> dict[str, object]:
    marker = decode_marker(record.key, record.value)
    if marker is None:
        kind = control_type(record.key)
        return {"controlType": f"{_CONTROL_TYPES.get(kind, 'UNKNOWN')}({kind})"}
    return {"endTxnMarker": marker.type.name, "coordinatorEpoch": marker.coordinator_epoch}


def _record_row(dumped: _DumpedRecord, options: DumpOptions, *, is_control: bool) -> Row:
    fields = {} if options.skip_record_metadata else dict(dumped.fields)
    if options.print_data_log and not is_control:
        for name, content in (("key", dumped.record.key), ("payload", dumped.record.value)):
            if content is not None:
                fields[name] = content.decode("utf-8", "replace")
    return Row(fields, of_record=True)
