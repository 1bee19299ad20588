"""Reading the files of a partition for `ottla log dump`.

Owns: which reader understands which file. Never: prints, or changes a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla.log.dump.index_dump import dump_offset_index, dump_time_index, dump_transaction_index
from ottla.log.dump.rows import DumpOptions, Item, Row, Uncertain, bad_byte
from ottla.log.dump.segment_dump import dump_log
from ottla.log.files import Disk
from ottla.log.producers import snapshot_file
from ottla.log.producers.snapshot_file import CorruptSnapshot, ProducerEntry
from ottla.protocol.records.header import MAX_SEQUENCE

KINDS: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def dump(path: Path, disk: Disk, options: DumpOptions) -> Iterator[Item]:
    """Everything worth saying about one file, in the order in which it stands there."""
    match path.suffix:
        case ".log":
            return dump_log(path, disk, options)
        case ".index":
            return dump_offset_index(path, disk, options)
        case ".timeindex":
            return dump_time_index(path, disk, options)
        case ".txnindex":
            return dump_transaction_index(path, disk)
        case ".snapshot":
            return dump_snapshot(path, disk)
        case _:
            raise ValueError(f"{path}: unknown kind of file, expected one of {', '.join(KINDS)}")


def dump_snapshot(path: Path, disk: Disk) -> Iterator[Item]:
    try:
        entries = snapshot_file.decode(disk.read(path))
    except CorruptSnapshot as fault:
        yield bad_byte(path, 0, str(fault))
        return
    for entry in entries:
        yield Row(_producer_fields(entry))


def _producer_fields(entry: ProducerEntry) -> dict[str, object]:
    fields: dict[str, object] = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": Uncertain(
            None if entry.txn_first_offset < 0 else entry.txn_first_offset
        ),
        "lastTimestamp": entry.timestamp,
    }
    if entry.last_offset >= 0:
        fields |= {
            "firstSequence": (entry.last_sequence - entry.offset_delta) & MAX_SEQUENCE,
            "lastSequence": entry.last_sequence,
            "lastOffset": entry.last_offset,
            "offsetDelta": entry.offset_delta,
            "timestamp": entry.timestamp,
        }
    return fields
