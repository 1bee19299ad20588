"""Appending a batch that nothing is special about, in one pass.

The general path (`validate.analyse`, `Log.append`) decides what to do with any record set. Most
batches need no decision at all: a sound header, a topic with ordinary settings, room in the active
segment, a producer that sends its next sequence. Those are checked and written here, with the
result the general path would have given; a test holds the two against each other. Never refuses:
what is unusual in any way is declined with nothing changed, for the general path to look at.
Hot: benchmarks/small_requests.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log import validate
from ottla.log.segment.rollover import LARGEST_ENTRY
from ottla.log.segment.segment import MAX_RELATIVE_OFFSET
from ottla.model.ids import Offset
from ottla.protocol.records.batch import HEAD, HEADER, HEADER_SIZE, OVERHEAD, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.crc import crc32c
from ottla.protocol.records.header import ATTRIBUTES_AT, MAX_SEQUENCE, CorruptBatch
from ottla.protocol.records.record import validate_records

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig
    from ottla.log.log import Log

DECLINED: Final = -1
_HEAD_SIZE: Final = HEAD.size


class PlainRules:
    """What a topic's settings ask of a plain batch, looked up once for each change of them."""

    __slots__ = (
        "config", "index_interval", "max_after_ms", "max_before_ms", "max_bytes",
        "max_index_bytes", "max_unflushed", "native", "segment_bytes", "segment_ms", "walk",
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
        self.index_interval = config.index_interval_bytes
        self.max_unflushed = config.flush_messages


def append_plain(log: Log, batch: memoryview, leader_epoch: int, now_ms: int) -> Offset:
    """The batch's first offset, once it is written; or DECLINED. An OSError is a failed disk."""
    rules = log.plain
    if rules is None or rules.config is not log.config or rules.native is not validate.native:
        rules = log.plain = PlainRules(log.config)
    size = len(batch)
    if size < HEADER_SIZE or size > rules.max_bytes:
        return DECLINED
    (
        base, length, _, magic, crc, attributes, delta, oldest, newest, producer_id, epoch,
        sequence, count,
    ) = HEADER.unpack_from(batch)  # fmt: skip
    first: Offset = log.end_offset
    last = first + delta
    segment = log.segments.active
    position = segment.size
    began = -1 if (known := segment.known_first_timestamp) is None else known
    if (
        magic != 2
        or base
        or length + OVERHEAD != size
        or count != delta + 1
        or count <= 0
        or attributes > Codec.ZSTD  # flags of any kind, or a codec nobody knows
        or attributes < 0
        or newest > now_ms + rules.max_after_ms
        or oldest < now_ms - rules.max_before_ms
        or not position
        or began < 0  # its age is counted otherwise
        or position + size > rules.segment_bytes
        or newest - began > rules.segment_ms - segment.jitter_ms
        or segment.index_bytes > rules.max_index_bytes
        or last - segment.base_offset > MAX_RELATIVE_OFFSET
        or last + 1 - log.recovery_point >= rules.max_unflushed
        or sequence + delta > MAX_SEQUENCE
        or leader_epoch != log.epochs.latest
        or segment.known_max_timestamp is None
        or crc32c(batch[ATTRIBUTES_AT:]) != crc
        or (rules.walk is not None and not _is_sound(batch, rules.walk))
    ):
        return DECLINED
    producer = log.producers.awaiting(producer_id, epoch, sequence) if producer_id >= 0 else None
    if producer_id >= 0 and producer is None:
        return DECLINED
    segment.file().append((HEAD.pack(first, length, leader_epoch), batch[_HEAD_SIZE:]))
    segment.note(first, last, newest, size, rules.index_interval)
    log.end_offset = last + 1
    if producer is not None:
        producer.took(sequence, sequence + delta, first, last, newest)
    return first


def _is_sound(batch: memoryview, walk: validate.Walk) -> bool:
    """Whether the records are what the header says, without having to be unpacked first."""
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
