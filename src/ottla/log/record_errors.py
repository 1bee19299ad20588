"""Which records of a batch a topic's settings refuse, each named by its index. Pure.

Owns the rules for keys and timestamps, and Kafka's texts for them: clients show them to the
application, and tell it by the index which record to leave out. Never judges whether a record is
well formed (`validate`).

A summary of the records says cheaply whether one of them may be refused; only then are they looked
at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition
from ottla.protocol.records.header import CODEC_BITS, LOG_APPEND_TIME_BIT, NO_TIMESTAMP, BatchHeader
from ottla.protocol.records.record import INT64_MIN, record_sizes

if TYPE_CHECKING:
    from ottla.config.topic import TopicConfig

MAX_NAMED: Final = 10_000
"""Records named in one refusal; it counts those beyond too. Kafka's own replies have no bound."""
SHOWN: Final = 3  # in the text of the refusal as a whole


class RecordError(NamedTuple):
    """Why one record of a batch was refused, for a produce reply's `record_errors`."""

    batch_index: int
    message: str


class RefusedRecords(KafkaError):
    """A batch refused because of records in it, with the reasons one by one."""

    def __init__(self, code: ErrorCode, message: str, errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.errors = errors


class RecordRules(NamedTuple):
    """What is asked of each record of a partition at a moment."""

    config: TopicConfig
    now_ms: WallMs
    partition: TopicPartition | None = None  # only for texts

    @property
    def earliest_ms(self) -> int:
        return self.now_ms - self.config.message_timestamp_before_max_ms

    @property
    def latest_ms(self) -> int:
        return self.now_ms + self.config.message_timestamp_after_max_ms


def may_refuse(
    oldest: int, newest: int, *, has_null_key: bool, header: BatchHeader, rules: RecordRules
) -> bool:
    """Whether a record that is refused can be among those of these times. Hot."""
    config, now_ms, _ = rules
    if has_null_key and "compact" in config.cleanup_policy:
        return True
    append_time = header.attributes & LOG_APPEND_TIME_BIT
    if append_time:
        oldest = newest = header.max_timestamp
    if config.message_timestamp_type == "LogAppendTime" or oldest == newest == NO_TIMESTAMP:
        return bool(append_time)
    return (
        newest > now_ms + config.message_timestamp_after_max_ms
        or oldest < now_ms - config.message_timestamp_before_max_ms
    )


def check_records(section: bytes | memoryview, header: BatchHeader, rules: RecordRules) -> None:
    """RefusedRecords, with every record that is refused, if there is one.

    The records must be well formed.
    """
    errors: list[RecordError] = []
    count, code = 0, ErrorCode.invalid_record
    for found, error in _errors(section, header, rules):
        count += 1
        if found is ErrorCode.invalid_timestamp:
            code = found
        if count <= MAX_NAMED:
            errors.append(error)
    if not count:
        return
    if code is ErrorCode.invalid_timestamp:
        text = "One or more records have been rejected due to invalid timestamp"
    else:
        text = (
            f"One or more records have been rejected due to {count} record errors in total, and "
            f"only showing the first three errors at most: [{_list_errors(errors[:SHOWN])}]"
        )
    raise RefusedRecords(code, text, errors)


def _errors(
    section: bytes | memoryview, header: BatchHeader, rules: RecordRules
) -> Iterator[tuple[ErrorCode, RecordError]]:
    """At most one for each record: its key is looked at first."""
    compacted = "compact" in rules.config.cleanup_policy
    where = "" if rules.partition is None else f" in topic partition {rules.partition}"
    for index, (timestamp, key, value) in enumerate(record_sizes(section, header)):
        if compacted and key < 0:
            text = f"Compacted topic cannot accept message without key{where}"
            yield ErrorCode.invalid_record, RecordError(index, text)
            continue
        wrong = _timestamp_error(header, rules, index, timestamp)
        if wrong is None:
            continue
        if not wrong:
            record = _describe_record(header, rules.config, (index, timestamp, key, value))
            wrong = (
                f"Invalid timestamp type in message {record}. Producer should not set timestamp "
                "type to LogAppendTime."
            )
        yield ErrorCode.invalid_timestamp, RecordError(index, wrong)


def _timestamp_error(
    header: BatchHeader, rules: RecordRules, index: int, timestamp: int
) -> str | None:
    """None if it may be; an empty text if it is not the producer's to give."""
    if rules.config.message_timestamp_type == "CreateTime" and timestamp != NO_TIMESTAMP:
        earliest, latest = rules.earliest_ms, rules.latest_ms
        if earliest <= timestamp <= latest:
            return None
        return (
            f"Timestamp {timestamp} of message with offset {index} is out of range. The timestamp "
            f"should be within [{_int64(earliest)}, {_int64(latest)}]"
        )
    return "" if header.timestamp_type else None


def _describe_record(
    header: BatchHeader, config: TopicConfig, record: tuple[int, int, int, int]
) -> str:
    """A record as Kafka writes it down; of a compressed one it has not read all."""
    index, timestamp, key, value = record
    kind = "DefaultRecord"
    if header.attributes & CODEC_BITS and config.compression_type in ("producer", _name(header)):
        kind = "PartialDefaultRecord"
    else:
        key, value = max(key, 0), max(value, 0)
    return f"{kind}(offset={index}, timestamp={timestamp}, key={key} bytes, value={value} bytes)"


def _name(header: BatchHeader) -> str:
    return header.codec.name.lower()


def _list_errors(errors: list[RecordError]) -> str:
    return ", ".join(
        f"RecordError(batchIndex={index}, message='{message}')" for index, message in errors
    )


def _int64(value: int) -> int:
    """As a sum of two int64 comes out where it is too large for one."""
    return (value - INT64_MIN) % 2**64 + INT64_MIN
