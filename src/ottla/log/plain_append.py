"""Appending, in one pass, a batch that needs no decision.

The general path (`validate.analyse`, `Log.append`) decides what to do with any record set. Most
batches need no decision: a valid header, a topic with ordinary settings, room in the active
segment, a producer that sends its next sequence. `Log.append_plain` checks and writes those, with
the result of the general path; a test compares the two. It never refuses a batch: anything unusual
is declined with nothing changed, and the caller takes the general path.

Owns what of a topic's settings that needs. Hot: benchmarks/small_requests.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.log import validate
from ottla.log.segment.rollover import LARGEST_ENTRY
from ottla.protocol.records.batch import HEADER_SIZE, read_header
from ottla.protocol.records.compression import Codec
from ottla.protocol.records.header import CorruptBatch
from ottla.protocol.records.record import validate_records

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig

DECLINED: Final = -1
LAST_CODEC: Final = int(Codec.ZSTD)


class PlainRules:
    """The limits a topic's settings put on a plain batch, computed once per configuration."""

    __slots__ = (
        "index_interval", "max_after_ms", "max_before_ms", "max_bytes",
        "max_index_bytes", "max_unflushed", "native", "segment_bytes", "segment_ms", "walk",
    )  # fmt: skip

    def __init__(self, config: TopicConfig) -> None:
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


def has_valid_records(batch: memoryview, walk: validate.Walk) -> bool:
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
