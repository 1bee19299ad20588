"""What a record set must be before a leader appends it, and how it is rewritten. Pure.

Owns the table of refusals of a produce request. Never assigns an offset, writes, or knows what
other batches the log holds (`producers` judges sequences). What cannot be a batch is
CORRUPT_MESSAGE, what a client may not write is INVALID_RECORD.

The header, lengths, checksum, count and codec are always checked. The records inside are walked
for compacted topics, when the codec must change, and where `record.validation` says so: `full`,
or `auto` where the native kernels are installed. Until they are loaded (`use_native_kernels`)
records are walked in Python, which takes two microseconds for each: a batch that could hold up the
loop is left to `rewrite`, and so is one of which many records may have to be named.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.log.files import Buffer
from ottla.log.record_errors import (
    RecordError,
    RecordRules,
    RefusedRecords,
    check_records,
    may_refuse,
)
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.model.tuples import new
from ottla.protocol.records import record
from ottla.protocol.records.batch import (
    HEADER,
    HEADER_SIZE,
    OVERHEAD,
    BatchHeader,
    CorruptBatch,
)
from ottla.protocol.records.compression import Codec, compress
from ottla.protocol.records.crc import crc32c
from ottla.protocol.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC_AT,
)
from ottla.protocol.records.record import Summary, records_section

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig

__all__ = ["Analysis", "Origin", "RecordError", "RefusedRecords", "analyse", "rewrite"]

INLINE_BYTES: Final = 16 * 1024
"""The largest records section that is walked in Python on the loop: a few milliseconds."""
LEGACY_OVERHEAD: Final = 14  # the least that any format has after offset and length
CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

Walk: TypeAlias = Callable[..., Summary]


class Origin(Enum):
    """Who wrote a record set: a client is believed nothing."""

    CLIENT = 1
    COORDINATOR = 2
    REPLICATION = 3


class Analysis(NamedTuple):
    """One batch that may be appended: its bytes, and what its header should say."""

    content: memoryview
    header: BatchHeader
    needs_rewrite: bool  # the codec must change, or the records take long; `rewrite` first
    restamped: bool  # `header` differs from the bytes: write it, with a new checksum


installed: bool = all(find_spec(name) is not None for name in ("numba", "pyarrow"))
"""Whether there are native kernels to load, so that `record.validation=auto` means full."""
native: Walk | None = None
"""The compiled walk over a batch's records, once it is loaded and warm."""


def use_native_kernels(walk: Walk | None) -> None:
    """Walk records with this from now on, instead of in Python."""
    global native  # set once
    native = walk


def analyse(
    records: Buffer | None,
    config: TopicConfig,
    *,
    now_ms: WallMs,
    origin: Origin = Origin.CLIENT,
    zstd: bool = True,
    partition: TopicPartition | None = None,
) -> Analysis:
    """Check one record set; KafkaError if it must not be appended. Hot: benchmarks/log.py.

    `zstd` says whether the request's version knows that codec; `partition` is for texts.
    """
    view = records if type(records) is memoryview else memoryview(records or b"")
    if len(view) < HEADER_SIZE:
        raise _too_short(view)
    header = new(BatchHeader, HEADER.unpack_from(view))
    base, length, _, magic, crc, attributes, _, _, _, _, _, _, _ = header
    size = length + OVERHEAD
    if magic != 2 or size != len(view) or base:
        view = _only_batch(view, header, origin)
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.message_too_large,
            f"batch of {size} bytes exceeds max.message.bytes={config.max_message_bytes}",
        )
    if crc32c(view[ATTRIBUTES_AT:]) != crc:
        raise KafkaError(ErrorCode.corrupt_message, "batch has an invalid checksum")
    if origin is Origin.CLIENT:
        _check_client_batch(header)
    codec = attributes & CODEC_BITS
    if codec > Codec.ZSTD or (codec == Codec.ZSTD and not zstd):
        raise KafkaError(
            ErrorCode.unsupported_compression_type, f"compression codec {codec} is not supported"
        )
    if config.compression_type != "producer" and _changes_codec(header, config):
        return new(Analysis, (view, header, True, False))
    stamped = _examine(view, header, new(RecordRules, (config, now_ms, partition)))
    if stamped is None:
        return new(Analysis, (view, header, True, False))
    return new(Analysis, (view, stamped, False, stamped is not header))


def _examine(view: memoryview, header: BatchHeader, rules: RecordRules) -> BatchHeader | None:
    """What the header should say, once the records were looked at; None if that takes long."""
    config = rules.config
    codec = header.attributes & CODEC_BITS
    small = not codec and len(view) <= INLINE_BYTES
    walked = not header.attributes & CONTROL_BIT and walks_records(config)
    stamped = header
    if walked:
        if native is None and not small:
            return None
        section = _decompress(view, header) if codec else view[HEADER_SIZE:]
        oldest, newest, _, null_key = summary = _summarize(section, header)
        stamped = _with_newest(header, summary)
    else:
        oldest, newest, null_key = header.base_timestamp, header.max_timestamp, -1
    if may_refuse(oldest, newest, has_null_key=null_key >= 0, header=header, rules=rules):
        if not small:
            return None
        _refuse_bad(view[HEADER_SIZE:], header, rules, walked=walked)
    return _with_time(stamped, config, rules.now_ms)


def rewrite(
    analysis: Analysis, config: TopicConfig, now_ms: WallMs, partition: TopicPartition | None = None
) -> Analysis:
    """The same records, every one examined, under the topic's own codec. Slow: not on the loop."""
    header = analysis.header
    rules = RecordRules(config, now_ms, partition)
    section = _decompress(analysis.content, header)
    oldest, newest, _, null_key = summary = _summarize(section, header)
    if may_refuse(oldest, newest, has_null_key=null_key >= 0, header=header, rules=rules):
        check_records(section, header, rules)
    stamped = _with_time(_with_newest(header, summary), config, now_ms)
    if not _changes_codec(header, config):
        return Analysis(analysis.content, stamped, False, stamped is not header)
    codec = CODECS[config.compression_type]
    packed = compress(codec, bytes(section), _level(codec, config))
    header = stamped._replace(
        length=HEADER_SIZE - OVERHEAD + len(packed),
        attributes=stamped.attributes & ~CODEC_BITS | codec,
    )
    if header.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.message_too_large,
            f"batch of {header.size} bytes after recompression exceeds max.message.bytes",
        )
    content = memoryview(HEADER.pack(*header) + packed)
    return Analysis(content, header, needs_rewrite=False, restamped=True)


def stamped_head(analysis: Analysis, base_offset: int, leader_epoch: int) -> bytes:
    """A whole new header, with the checksum its fields ask for; the records stay as they are."""
    header = analysis.header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    head = HEADER.pack(*header)
    crc = crc32c(analysis.content[HEADER_SIZE:], crc32c(head[ATTRIBUTES_AT:]))
    return HEADER.pack(*header._replace(crc=crc))


class MalformedBatch(KafkaError):
    """Bytes in which not even the next batch can be found; Kafka tells the producer why."""


def _only_batch(view: memoryview, header: BatchHeader, origin: Origin) -> memoryview:
    """The bytes of the one batch a record set may hold; a cut tail behind it is ignored."""
    if header.magic != 2 or header.length < HEADER_SIZE - OVERHEAD:
        raise _bad_format(header.length, header.magic)
    size = header.length + OVERHEAD
    if len(view) < size:
        raise KafkaError(ErrorCode.invalid_record, "batch extends past the end of the record set")
    if len(view) - size >= OVERHEAD:
        _check_tail(view[size:])
    if header.base_offset and origin is Origin.CLIENT:
        raise KafkaError(ErrorCode.invalid_record, f"base offset {header.base_offset} is not 0")
    return view[:size]


def _too_short(view: memoryview) -> KafkaError:
    """Why a record set shorter than one v2 header holds no batch."""
    if len(view) >= OVERHEAD:
        length = int.from_bytes(view[8:OVERHEAD], "big", signed=True)
        if length < LEGACY_OVERHEAD:
            return _below_minimum(length)
        if len(view) > MAGIC_AT:
            magic = int.from_bytes(view[MAGIC_AT : MAGIC_AT + 1], "big", signed=True)
            if magic != 2 or length < HEADER_SIZE - OVERHEAD:
                return _bad_format(length, magic)
    return KafkaError(ErrorCode.invalid_record, "record set has no complete batch")


def _bad_format(length: int, magic: int) -> KafkaError:
    if magic in (0, 1) and length >= LEGACY_OVERHEAD:
        return KafkaError(ErrorCode.invalid_record, f"batch has magic {magic}, expected 2")
    if length < LEGACY_OVERHEAD:
        return _below_minimum(length)
    if magic == 2:
        return KafkaError(ErrorCode.corrupt_message, f"batch has invalid length {length}")
    return MalformedBatch(ErrorCode.corrupt_message, f"Invalid magic found in record: {magic}")


def _below_minimum(length: int) -> KafkaError:
    return MalformedBatch(
        ErrorCode.corrupt_message,
        f"Record size {length} is less than the minimum record overhead ({LEGACY_OVERHEAD})",
    )


def _check_tail(tail: memoryview) -> None:
    length = int.from_bytes(tail[8:OVERHEAD], "big", signed=True)
    if length < LEGACY_OVERHEAD:
        raise _below_minimum(length)
    if len(tail) >= length + OVERHEAD:
        raise KafkaError(ErrorCode.invalid_record, "record set has more than one batch")


def _check_client_batch(header: BatchHeader) -> None:
    count, delta = header.count, header.last_offset_delta
    if header.attributes & CONTROL_BIT:
        raise KafkaError(ErrorCode.invalid_record, "clients must not write control records")
    if count <= 0 or count != delta + 1:
        raise KafkaError(
            ErrorCode.invalid_record, f"batch has {count} records for {delta + 1} offsets"
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise KafkaError(
            ErrorCode.invalid_record,
            f"producer {header.producer_id} sent invalid sequence {header.base_sequence}",
        )


def walks_records(config: TopicConfig) -> bool:
    """Whether every record of a batch is looked at."""
    mode = config.record_validation
    return mode == "full" or (mode == "auto" and installed) or "compact" in config.cleanup_policy


def _changes_codec(header: BatchHeader, config: TopicConfig) -> bool:
    wanted = config.compression_type
    attributes = header.attributes
    if wanted == "producer" or attributes & CONTROL_BIT:
        return False
    return CODECS[wanted] != attributes & CODEC_BITS


def _refuse_bad(
    section: memoryview, header: BatchHeader, rules: RecordRules, *, walked: bool
) -> None:
    """Name the records that are refused; a header that lies about its times is no reason."""
    if not walked:
        _summarize(section, header)
    check_records(section, header, rules)


def _decompress(content: memoryview, header: BatchHeader) -> bytes | memoryview:
    try:
        return records_section(content, header)
    except CorruptBatch as fault:
        raise KafkaError(ErrorCode.invalid_record, str(fault)) from None


def _summarize(section: bytes | memoryview, header: BatchHeader) -> Summary:
    try:
        return (native or record.validate_records)(section, header, dense=True)
    except CorruptBatch as fault:
        raise KafkaError(ErrorCode.invalid_record, str(fault)) from None


def _with_newest(header: BatchHeader, summary: Summary) -> BatchHeader:
    """The largest timestamp is what the records say, not what the producer claims."""
    if header.timestamp_type or header.max_timestamp == summary.max_timestamp:
        return header
    return header._replace(max_timestamp=summary.max_timestamp)


def _with_time(header: BatchHeader, config: TopicConfig, now_ms: WallMs) -> BatchHeader:
    """Put our own time where the topic wants it, and take a producer's claim to it away."""
    if config.message_timestamp_type == "LogAppendTime":
        return header._replace(
            attributes=header.attributes | LOG_APPEND_TIME_BIT, max_timestamp=now_ms
        )
    if header.attributes & LOG_APPEND_TIME_BIT:
        return header._replace(attributes=header.attributes & ~LOG_APPEND_TIME_BIT)
    return header


def _level(codec: Codec, config: TopicConfig) -> int | None:
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case _:
            return None
