"""What compaction retains of one batch.

Owns: the rules for records, tombstones, markers, and for batches that must stay although they
are empty.
Never: reads a file. Offsets never change and nothing is reordered: a rewritten batch keeps its
base offset, its last offset and its producer's sequence, and leaves gaps where records went.

A tombstone, and a marker without any data left, must stay readable for `delete.retention.ms`. The
first round that meets one writes the time of its removal into the batch (the delete horizon, in
place of the base timestamp); a later round removes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.index.txn_index import AbortedTxn
from ottla.log.producers.snapshot_file import ProducerEntry
from ottla.log.stored_batch import StoredBatch
from ottla.model.clock import WallMs
from ottla.model.ids import Offset
from ottla.protocol.records import legacy
from ottla.protocol.records.batch import BatchHeader, build
from ottla.protocol.records.control import ControlType, decode_marker
from ottla.protocol.records.record import Record, read_records


class TransactionTracker:
    """Feed it every transactional data batch and every marker, in order."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._coming = deque(sorted(set(aborted), key=lambda txn: txn.first_offset))
        self._aborted: dict[int, AbortedTxn] = {}
        self._with_data: set[int] = set()
        self._retained: list[AbortedTxn] = []

    def data(self, producer_id: int, last_offset: Offset) -> bool:
        """A transactional data batch; whether it belongs to an aborted transaction."""
        self._advance(last_offset)
        self._with_data.add(producer_id)
        return producer_id in self._aborted

    def marker(self, producer_id: int, offset: Offset, *, commit: bool) -> bool:
        """The end of a transaction; whether it has no data left, so that the marker is not needed.

        An aborted transaction that still has data keeps its line in the transaction index.
        """
        self._advance(offset)
        aborted = None if commit else self._aborted.pop(producer_id, None)
        had_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        if aborted is not None and had_data:
            self._retained.append(aborted)
        return not had_data

    def take_retained(self) -> list[AbortedTxn]:
        """The aborted transactions with data whose markers were met since the last call."""
        retained, self._retained = self._retained, []
        return retained

    def _advance(self, offset: Offset) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            txn = self._coming.popleft()
            self._aborted.setdefault(txn.producer_id, txn)


Batch: TypeAlias = bytes | memoryview


class CleaningRound(NamedTuple):
    """What one round of compaction of one log decides by."""

    newest: OffsetMap
    active: Mapping[int, ProducerEntry]  # by producer id
    now_ms: WallMs
    delete_retention_ms: int

    @property
    def horizon_ms(self) -> int:
        """When a tombstone that this round meets first may be removed."""
        return self.now_ms + self.delete_retention_ms


def filter_batch(
    batch: StoredBatch,
    content: memoryview,
    tracker: TransactionTracker,
    round_: CleaningRound,
    *,
    is_last: bool = False,
) -> Batch:
    """What is retained: the batch, a smaller one, one without records, or nothing (b"").

    The last batch of the cleanable part is always retained, as in Kafka: its offset is the end of
    that part.
    """
    header = batch.header
    if header is None:
        return _filter_legacy(content, round_, is_last)
    horizon = header.base_timestamp if header.has_delete_horizon else None
    passed = horizon is not None and horizon <= round_.now_ms
    records = list(read_records(content))
    unneeded = False
    if header.is_control:
        unneeded = _marker_is_unneeded(header, records, tracker)
        retained = [] if unneeded and passed else records
    elif header.is_transactional and tracker.data(header.producer_id, header.last_offset):
        retained = []
    else:
        retained = [record for record in records if _is_retained(record, round_.newest, passed)]
    if not retained:
        stays = is_last or _holds_sequence(header, round_.active)
        return _rebuild(header, [], None) if stays else b""
    waits = horizon is None and (unneeded or _has_tombstone(retained))
    if len(retained) == len(records) and not waits:
        return content
    return _rebuild(header, retained, round_.horizon_ms if waits else horizon)


def keys(
    batch: StoredBatch, content: memoryview, tracker: TransactionTracker
) -> Iterator[tuple[bytes, Offset]]:
    """Key and offset of each record that counts: not those of aborted transactions."""
    header = batch.header
    if header is None:
        records: Iterable[Record] = legacy.records(next(legacy.entries(content)))
    else:
        records = read_records(content)
        if header.is_control:
            _marker_is_unneeded(header, list(records), tracker)
            return
        if header.is_transactional and tracker.data(header.producer_id, header.last_offset):
            return
    for record in records:
        if record.key is not None:
            yield record.key, record.offset


def without_records(batch: StoredBatch, content: memoryview) -> bytes:
    """The batch without its records: its offsets mark the end of a segment."""
    if batch.header is not None:
        return _rebuild(batch.header, [], None)
    return _convert_legacy(content, [], None)


def _filter_legacy(content: memoryview, round_: CleaningRound, is_last: bool) -> Batch:
    """An entry in an older format: unchanged or, when records are removed, as a v2 batch.

    Only v2 has a delete horizon and can be empty.
    """
    entry = next(legacy.entries(content))
    records = legacy.records(entry)
    retained = [
        record for record in records if _is_retained(record, round_.newest, tombstones_go=False)
    ]
    if not retained and not is_last:
        return b""
    waits = _has_tombstone(retained)
    if len(retained) == len(records) and not waits:
        return content
    return _convert_legacy(content, retained, round_.horizon_ms if waits else None)


def _convert_legacy(content: memoryview, retained: list[Record], horizon_ms: int | None) -> bytes:
    entry = next(legacy.entries(content))
    base_offset = legacy.records(entry)[0].offset
    return build(
        retained,
        base_offset=base_offset,
        codec=entry.codec,
        timestamp_type=entry.timestamp_type,
        delete_horizon_ms=horizon_ms,
        last_offset_delta=entry.offset - base_offset,
        max_timestamp=entry.timestamp if entry.timestamp_type or not retained else None,
    )


def _is_retained(record: Record, newest: OffsetMap, tombstones_go: bool) -> bool:
    if record.offset > newest.latest_offset:
        return True  # beyond what the map covers
    if record.key is None:
        return False
    if record.value is None and tombstones_go:
        return False
    return record.offset >= newest.get(record.key)


def _has_tombstone(records: list[Record]) -> bool:
    return any(record.value is None for record in records)


def _marker_is_unneeded(
    header: BatchHeader, records: list[Record], tracker: TransactionTracker
) -> bool:
    if not records:
        return True
    marker = decode_marker(records[0].key, records[0].value)
    if marker is None:  # other control records are retained
        return False
    commit = marker.type is ControlType.COMMIT
    return tracker.marker(header.producer_id, header.last_offset, commit=commit)


def _holds_sequence(header: BatchHeader, active: Mapping[int, ProducerEntry]) -> bool:
    """Whether an active producer's next sequence, or its epoch, is known by this batch."""
    last = active.get(header.producer_id)
    if last is None or header.producer_id < 0:
        return False
    if last.last_offset >= 0:
        return header.last_offset == last.last_offset
    return header.is_control and header.producer_epoch == last.epoch


def _rebuild(header: BatchHeader, records: list[Record], horizon_ms: int | None) -> bytes:
    by_append = header.timestamp_type == 1
    return build(
        records,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        codec=header.codec,
        timestamp_type=header.timestamp_type,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        delete_horizon_ms=horizon_ms,
        last_offset_delta=header.last_offset_delta,
        max_timestamp=header.max_timestamp if by_append or not records else None,
    )
