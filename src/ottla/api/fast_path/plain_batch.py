"""Which batches need no decision before they are appended.

The general path (`log.validate`, `Log.append`) decides what to do with any record set. Most
batches need no decision: a valid header, a topic with ordinary settings, room in the active
segment, a producer that sends its next sequence. `PlainBatches.check` recognises those; what it
declines may be valid or not. A test compares the logs that both paths leave.

Owns the limits of a topic's settings. Never changes a log. Hot: benchmarks/small_requests.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log import validate
from ottla.log.segment.rollover import LARGEST_ENTRY
from ottla.log.segment.segment import MAX_RELATIVE_OFFSET
from ottla.model.clock import WallMs
from ottla.protocol.records.batch import HEADER, HEADER_SIZE, OVERHEAD, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.crc import crc32c
from ottla.protocol.records.header import ATTRIBUTES_AT, MAX_SEQUENCE, CorruptBatch
from ottla.protocol.records.record import validate_records

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig
    from ottla.log.log import Log

NEVER: Final = 1 << 62  # records: more than a log can hold
LAST_CODEC: Final = int(Codec.ZSTD)


class PlainBatches:
    """Checks the batches of one topic."""

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: _Limits | None = None  # of the configuration used last

    def check(
        self, batch: memoryview, log: Log, leader_epoch: int, now_ms: WallMs
    ) -> tuple[int, ...] | None:
        """The header of a batch that `Log.append_validated` may append now; None if declined."""
        limits, config = self._limits, log.config
        if limits is None or limits.config is not config or limits.native is not validate.native:
            limits = self._limits = _Limits(config)
        size = len(batch)
        if size < HEADER_SIZE or size > limits.max_bytes:
            return None
        header = HEADER.unpack_from(batch)
        (
            base, length, _, magic, crc, attributes, delta, oldest, newest, producer_id, epoch,
            sequence, count,
        ) = header  # fmt: skip
        last = log.end_offset + delta
        segment = log.segments.active
        position = segment.size
        began = segment.known_first_timestamp
        if (
            magic != 2
            or base
            or length + OVERHEAD != size
            or not 0 < count == delta + 1
            or not 0 <= attributes <= LAST_CODEC  # any flag, or an unknown codec
            or newest > now_ms + limits.max_after_ms
            or oldest < now_ms - limits.max_before_ms
            or not position
            or began is None
            or began < 0  # the segment's age is not counted by timestamps
            or position + size > limits.segment_bytes
            or newest - began > limits.segment_ms - segment.jitter_ms
            or segment.index_bytes > limits.max_index_bytes
            or last - segment.base_offset > MAX_RELATIVE_OFFSET
            or sequence + delta > MAX_SEQUENCE
            or leader_epoch != log.epochs.latest
            or (limits.flushes and last + 1 - log.recovery_point >= limits.max_unflushed)
            or segment.known_max_timestamp is None
            or crc32c(batch[ATTRIBUTES_AT:]) != crc
            or (limits.walk is not None and not _has_valid_records(batch, limits.walk))
            or (
                producer_id >= 0
                and log.producers.find_expecting(producer_id, epoch, sequence) is None
            )
        ):
            return None
        return header


class _Limits:
    """The limits that a topic's settings put on a plain batch."""

    __slots__ = (
        "config", "flushes", "max_after_ms", "max_before_ms", "max_bytes", "max_index_bytes",
        "max_unflushed", "native", "segment_bytes", "segment_ms", "walk",
    )  # fmt: skip

    def __init__(self, config: TopicConfig) -> None:
        self.config = config
        self.native = validate.native
        walks = validate.walks_records(config)
        self.walk = (validate.native or validate_records) if walks else None
        ordinary = (
            config.compression_type == "producer"
            and config.message_timestamp_type == "CreateTime"
            and "compact" not in config.cleanup_policy
        )
        self.max_bytes = min(config.max_message_bytes, config.segment_bytes) if ordinary else 0
        if walks and validate.native is None:  # more would take too long in Python
            self.max_bytes = min(self.max_bytes, validate.INLINE_BYTES)
        self.max_after_ms = config.message_timestamp_after_max_ms
        self.max_before_ms = config.message_timestamp_before_max_ms
        self.segment_bytes = config.segment_bytes
        self.segment_ms = config.segment_ms
        self.max_index_bytes = config.segment_index_bytes - LARGEST_ENTRY
        self.max_unflushed = config.flush_messages
        self.flushes = config.flush_messages < NEVER


def _has_valid_records(batch: memoryview, walk: validate.Walk) -> bool:
    """Whether uncompressed records match the header; False where they are compressed."""
    header = read_header(batch)
    if header.codec is not Codec.NONE:
        return False
    try:
        summary = walk(batch[HEADER_SIZE:], header, dense=True)
    except CorruptBatch:
        return False
    return (summary.min_timestamp, summary.max_timestamp) == (
        header.base_timestamp,
        header.max_timestamp,
    )
