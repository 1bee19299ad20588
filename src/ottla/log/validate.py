"""What a record set must be before a leader appends it, and how it is rewritten. Pure.

Owns the table of refusals of a produce request. Never assigns an offset, writes, or knows what
other batches the log holds (`producers` judges sequences). What cannot be a batch is
CORRUPT_MESSAGE, what a client may not write is INVALID_RECORD.

The header, lengths, checksum, count and codec are always checked. The records inside are walked
for compacted topics, when the codec must change, and where `record.validation` says so: `full`,
or `auto` once the native kernels are loaded (`use_native_kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ottla.log.files import Buffer
from ottla.model.errors import ErrorCode, KafkaError
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
    NO_TIMESTAMP,
)
from ottla.protocol.records.record import Summary, records_section

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig

LEGACY_OVERHEAD: Final = 14  # the least that any format has after offset and length
_new: Final = tuple.__new__  # half the cost of a named tuple's own constructor
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


class RecordError(NamedTuple):
    """Why one record of a batch was refused, for a produce reply's `record_errors`."""

    batch_index: int
    message: str


class RefusedRecords(KafkaError):
    """A batch refused because of records in it, with the reasons one by one."""

    def __init__(self, code: ErrorCode, message: str, errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.errors = errors


class Analysis(NamedTuple):
    """One batch that may be appended: its bytes, and what its header should say."""

    content: memoryview
    header: BatchHeader
    needs_rewrite: bool  # the codec must change; `rewrite` first
    restamped: bool  # `header` differs from the bytes: write it, with a new checksum


native: Walk | None = None
"""The compiled walk over a batch's records, once it is loaded and warm."""


def use_native_kernels(walk: Walk | None) -> None:
    """Walk records with this from now on, and let `record.validation=auto` mean full."""
    global native  # set once
    native = walk


def analyse(
    records: Buffer | None,
    config: TopicConfig,
    *,
    now_ms: int,
    origin: Origin = Origin.CLIENT,
    zstd: bool = True,
) -> Analysis:
    """Check one record set; KafkaError if it must not be appended. Hot: benchmarks/log.py.

    `zstd` says whether the request's version knows that codec.
    """
    view = records if type(records) is memoryview else memoryview(records or b"")
    if len(view) < HEADER_SIZE:
        raise _too_short(view)
    header = _new(BatchHeader, HEADER.unpack_from(view))
    base, length, _, magic, crc, attributes, _, oldest, _, _, _, _, _ = header
    size = length + OVERHEAD
    if magic != 2 or size != len(view) or base:
        view = _only_batch(view, header, origin)
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.message_too_large,
            f"batch of {size} bytes, more than max.message.bytes {config.max_message_bytes}",
        )
    if crc32c(view[ATTRIBUTES_AT:]) != crc:
        raise KafkaError(ErrorCode.corrupt_message, "batch fails its checksum")
    if origin is Origin.CLIENT:
        _check_client_batch(header)
    codec = attributes & CODEC_BITS
    if codec > Codec.ZSTD or (codec == Codec.ZSTD and not zstd):
        raise KafkaError(ErrorCode.unsupported_compression_type, f"codec {codec} cannot be used")
    wanted = config.compression_type
    control = attributes & CONTROL_BIT
    rewrites = wanted != "producer" and CODECS[wanted] != codec and not control
    stamped = header
    if not rewrites and not control and walks_records(config):
        summary = _walk_records(view, header, config)
        oldest = summary.min_timestamp
        stamped = _with_newest(header, summary)
    _check_times(stamped, config, oldest, now_ms)
    stamped = _with_time(stamped, config, now_ms)
    return _new(Analysis, (view, stamped, rewrites, stamped is not header))


def rewrite(analysis: Analysis, config: TopicConfig, now_ms: int) -> Analysis:
    """The same records under the topic's own codec. Slow: a caller may use another thread."""
    header = analysis.header
    section = _inflated(analysis.content, header)
    summary = _checked(section, header)
    _check_keys(summary, config)
    header = _with_newest(header, summary)
    if not header.timestamp_type:  # else `analyse` has put our own time there
        _check_times(header, config, summary.min_timestamp, now_ms)
    codec = CODECS[config.compression_type]
    packed = compress(codec, bytes(section), _level(codec, config))
    header = header._replace(
        length=HEADER_SIZE - OVERHEAD + len(packed),
        attributes=header.attributes & ~CODEC_BITS | codec,
    )
    if header.size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.message_too_large, f"batch of {header.size} bytes once recompressed"
        )
    content = memoryview(HEADER.pack(*header) + packed)
    return Analysis(content, header, needs_rewrite=False, restamped=True)


def stamped_head(analysis: Analysis, base_offset: int, leader_epoch: int) -> bytes:
    """A whole new header, with the checksum its fields ask for; the records stay as they are."""
    header = analysis.header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    head = HEADER.pack(*header)
    crc = crc32c(analysis.content[HEADER_SIZE:], crc32c(head[ATTRIBUTES_AT:]))
    return HEADER.pack(*header._replace(crc=crc))


def _only_batch(view: memoryview, header: BatchHeader, origin: Origin) -> memoryview:
    """The bytes of the one batch a record set may hold; a cut tail behind it is ignored."""
    if header.magic != 2 or header.length < HEADER_SIZE - OVERHEAD:
        raise _bad_format(header.length, header.magic)
    size = header.length + OVERHEAD
    if len(view) < size:
        raise KafkaError(ErrorCode.invalid_record, "batch runs past the end of the records")
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
            return KafkaError(ErrorCode.corrupt_message, f"batch has length {length}")
        if len(view) > MAGIC_AT:
            magic = int.from_bytes(view[MAGIC_AT : MAGIC_AT + 1], "big", signed=True)
            if magic != 2 or length < HEADER_SIZE - OVERHEAD:
                return _bad_format(length, magic)
    return KafkaError(ErrorCode.invalid_record, "no whole record batch")


def _bad_format(length: int, magic: int) -> KafkaError:
    if magic in (0, 1) and length >= LEGACY_OVERHEAD:
        return KafkaError(ErrorCode.invalid_record, f"batch has magic {magic}, expected 2")
    if magic == 2 or length < LEGACY_OVERHEAD:
        return KafkaError(ErrorCode.corrupt_message, f"batch has length {length}")
    return KafkaError(ErrorCode.corrupt_message, f"batch has magic {magic}, expected 2")


def _check_tail(tail: memoryview) -> None:
    length = int.from_bytes(tail[8:OVERHEAD], "big", signed=True)
    if length < LEGACY_OVERHEAD:
        raise KafkaError(ErrorCode.corrupt_message, f"batch has length {length}")
    if len(tail) >= length + OVERHEAD:
        raise KafkaError(ErrorCode.invalid_record, "more than one batch")


def _check_client_batch(header: BatchHeader) -> None:
    count, delta = header.count, header.last_offset_delta
    if header.attributes & CONTROL_BIT:
        raise KafkaError(ErrorCode.invalid_record, "a client may not write control records")
    if count <= 0 or count != delta + 1:
        raise KafkaError(
            ErrorCode.invalid_record, f"batch counts {count} records over {delta + 1} offsets"
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise KafkaError(
            ErrorCode.invalid_record,
            f"producer {header.producer_id} sent sequence {header.base_sequence}",
        )


def walks_records(config: TopicConfig) -> bool:
    """Whether every record of a batch is looked at."""
    mode = config.record_validation
    return (
        mode == "full"
        or (mode == "auto" and native is not None)
        or "compact" in config.cleanup_policy
    )


def _walk_records(content: memoryview, header: BatchHeader, config: TopicConfig) -> Summary:
    summary = _checked(_inflated(content, header), header)
    _check_keys(summary, config)
    return summary


def _inflated(content: memoryview, header: BatchHeader) -> bytes | memoryview:
    try:
        return records_section(content, header)
    except CorruptBatch as fault:
        raise KafkaError(ErrorCode.invalid_record, str(fault)) from None


def _checked(section: bytes | memoryview, header: BatchHeader) -> Summary:
    try:
        return (native or record.validate_records)(section, header, dense=True)
    except CorruptBatch as fault:
        raise KafkaError(ErrorCode.invalid_record, str(fault)) from None


def _check_keys(summary: Summary, config: TopicConfig) -> None:
    if summary.first_null_key >= 0 and "compact" in config.cleanup_policy:
        raise RefusedRecords(
            ErrorCode.invalid_record,
            "a compacted topic takes no record without a key",
            [RecordError(summary.first_null_key, "record has no key")],
        )


def _with_newest(header: BatchHeader, summary: Summary) -> BatchHeader:
    """The largest timestamp is what the records say, not what the producer claims."""
    if header.timestamp_type or header.max_timestamp == summary.max_timestamp:
        return header
    return header._replace(max_timestamp=summary.max_timestamp)


def _check_times(header: BatchHeader, config: TopicConfig, oldest: int, now_ms: int) -> None:
    if config.message_timestamp_type == "LogAppendTime":
        if header.timestamp_type:
            raise KafkaError(ErrorCode.invalid_timestamp, "a producer may not set the append time")
        return
    newest = header.max_timestamp
    if newest > now_ms + config.message_timestamp_after_max_ms or (
        oldest != NO_TIMESTAMP and oldest < now_ms - config.message_timestamp_before_max_ms
    ):
        raise RefusedRecords(
            ErrorCode.invalid_timestamp,
            f"timestamps from {oldest} to {newest} are out of range at {now_ms}",
            [RecordError(0, "timestamp is out of range")],
        )


def _with_time(header: BatchHeader, config: TopicConfig, now_ms: int) -> BatchHeader:
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
