"""The results of an append and of a read, and the errors a log cannot continue after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.log.file_slice import FileSlice
from ottla.model.ids import Offset
from ottla.protocol.records.batch import OVERHEAD
from ottla.protocol.records.header import CorruptBatch

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig
    from ottla.log.producers.producer_states import RecentBatch
    from ottla.protocol.records.batch import BatchHeader


class CorruptLog(Exception):
    """Flushed data is not what was written: the partition cannot be served."""


class CorruptSegment(CorruptBatch):
    """A batch of this segment is not what its checksum was computed from."""

    def __init__(self, segment_base: Offset, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.segment_base = segment_base


FAULTS: Final = (OSError, CorruptBatch)
"""Errors a log cannot recover from while in use: its disk failed, or flushed data is corrupt."""


class Appended(NamedTuple):
    """Where a batch was appended; for a `duplicate`, where the original was."""

    first_offset: Offset
    last_offset: Offset
    append_time_ms: int  # -1 unless message.timestamp.type is LogAppendTime
    log_start_offset: Offset
    size: int
    count: int  # type: ignore[assignment]  # Kafka's word for it
    duplicate: bool
    rolled: bool  # a segment was closed: worth a flush soon


def duplicate_of(
    original: RecentBatch, header: BatchHeader, config: TopicConfig, start_offset: Offset
) -> Appended:
    """The result of appending a batch again: that of the original, and nothing is written."""
    has_append_time = config.message_timestamp_type == "LogAppendTime"
    return Appended(
        original.first_offset,
        original.last_offset,
        original.timestamp if has_append_time else -1,
        start_offset,
        header.length + OVERHEAD,
        header.count,
        duplicate=True,
        rolled=False,
    )


class Read(NamedTuple):
    """What can be sent from an offset on, and where it is stored; `slice` is None for nothing."""

    slice: FileSlice | None
    offset: Offset
    segment_base: Offset
    position: int
