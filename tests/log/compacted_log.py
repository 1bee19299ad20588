"""A compacted log with a hand on its clock, its producers and its readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log.aborted_transactions import find_aborted
from ottla.log.compaction.cleaner import (
    CleanerMemory,
    LogCleaning,
    SegmentSwap,
    extent,
    lags,
)
from ottla.log.compaction.plan import DirtyLog, dirty_log_of
from ottla.log.files import Disk, RealDisk
from ottla.log.log import Origin
from ottla.log.recovery.log_loader import LogLocation, create
from ottla.log.stored_batch import StoredBatch, walk_whole
from ottla.model.clock import WallMs
from ottla.model.ids import NO_TOPIC_ID, TopicPartition
from ottla.protocol.records.batch import build
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.control import ControlType, EndTxnMarker, build_marker, decode_marker
from ottla.protocol.records.record import NewRecord, Record, read_records
from tests.fakes.forgetting_disk import ForgettingDisk

HOUR = 3_600_000
ROOMY = CleanerMemory()
FOLDER = Path("data/t-0")
COMPACTED = {"cleanup.policy": "compact", "delete.retention.ms": str(HOUR)}


class Compacted:
    """A compacted log with a hand on its clock, its producers and its readers."""

    def __init__(self, folder: Path, disk: Disk | None = None, **overrides: str) -> None:
        names = {key.replace("_", "."): value for key, value in overrides.items()}
        config = TopicConfig.of(BrokerConfig.parse({}, source="test"), {**COMPACTED, **names})
        partition, disk = TopicPartition("t", 0), disk or RealDisk()
        self.now_ms = WallMs(1_000 * HOUR)
        place = LogLocation(disk, Random(1), self.now_ms)
        self.log = create(partition, folder, config, place, NO_TOPIC_ID)
        self.cleaned_to: int | None = None
        self.epoch = 0

    def put(
        self, *records: tuple[bytes, bytes | None], producer: int = -1, codec: Codec = Codec.NONE
    ) -> None:
        """One batch; a producer's is part of its transaction."""
        new = [NewRecord(key, value, (), self.now_ms) for key, value in records]
        known = self.log.producers.get(producer)
        sequence = -1 if producer < 0 else known.last_sequence + 1 if known else 0
        batch = build(
            new,
            codec=codec,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
            transactional=producer >= 0,
        )
        self.log.append(batch, leader_epoch=self.epoch, now_ms=self.now_ms)
        self.log.raise_high_watermark(self.log.end_offset)

    def end(self, producer: int, kind: ControlType) -> None:
        batch = build_marker(
            EndTxnMarker(kind, 0), producer_id=producer, producer_epoch=0, timestamp=self.now_ms
        )
        self.log.append(batch, leader_epoch=0, now_ms=self.now_ms, origin=Origin.COORDINATOR)
        self.log.raise_high_watermark(self.log.end_offset)

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def dirt(self) -> DirtyLog:
        return dirty_log_of(extent(self.log), self.cleaned_to, lags(self.log), self.now_ms)

    def cleaning(self, memory: CleanerMemory = ROOMY) -> LogCleaning:
        return LogCleaning(self.log, self.dirt(), memory, self.now_ms)

    def clean(self, memory: CleanerMemory = ROOMY) -> None:
        cleaning = self.cleaning(memory)
        for step in cleaning.steps():
            if isinstance(step, SegmentSwap):
                step.perform(self.now_ms)
        self.cleaned_to = cleaning.end

    def batches(self) -> Iterator[tuple[StoredBatch, memoryview]]:
        for segment in self.log.segments:
            yield from walk_whole(segment.file(), 0, segment.size)

    def records(self, end: int | None = None) -> list[Record]:
        """Everything that is stored below an offset, markers left out."""
        return [
            record
            for batch, content in self.batches()
            if batch.header is not None and not batch.header.is_control
            for record in read_records(content)
            if end is None or record.offset < end
        ]

    def committed(self) -> list[Record]:
        """What a read-committed consumer makes of the log: Kafka's own algorithm."""
        coming = sorted(
            find_aborted(self.log, 0, self.log.end_offset),
            key=lambda txn: txn.first_offset,
        )
        aborting: set[int] = set()
        seen: list[Record] = []
        for batch, content in self.batches():
            header = batch.header
            assert header is not None
            if header.last_offset >= self.log.last_stable_offset:
                break
            while coming and coming[0].first_offset <= header.last_offset:
                aborting.add(coming.pop(0).producer_id)
            if header.is_control:
                for record in read_records(content):
                    marker = decode_marker(record.key, record.value)
                    if marker is not None and marker.type is ControlType.ABORT:
                        aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                seen.extend(read_records(content))
        return seen


def in_memory() -> Disk:
    return ForgettingDisk()


def latest(records: list[Record]) -> dict[bytes, bytes]:
    """The state that a reader of all records ends up with."""
    state: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return state


def files(compacted: Compacted, *suffixes: str) -> list[str]:
    return [name for name in compacted.log.disk.list(FOLDER) if name.endswith(suffixes)]
