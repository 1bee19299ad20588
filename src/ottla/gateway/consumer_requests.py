"""What clients ask of consumers, as typed values. Pure.

Owns: the fields of the requests below `/consumers`. Never: touches a consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from ottla.client.offsets import OffsetAndMetadata
from ottla.gateway.errors import INVALID_CONSUMER_CONFIG, HttpError, invalid
from ottla.gateway.json_fields import INT32_MAX, INT64_MAX, JsonObject
from ottla.gateway.media_types import Format
from ottla.model.ids import TopicPartition

MAX_NAME_LENGTH: Final = 249
MAX_PARTITIONS: Final = 10_000
MAX_TOPICS: Final = 1_000
MAX_PATTERN_LENGTH: Final = 1_000
MAX_FETCH_MIN_BYTES: Final = 10_000_000
DEFAULT_READ_TIMEOUT_MS: Final = 1_000
RESETS: Final = ("earliest", "latest", "none")

ValueT = TypeVar("ValueT")


class NewInstance(NamedTuple):
    """A consumer instance to create; without a name the gateway makes one."""

    name: str | None = None
    format: Format = Format.BINARY
    auto_offset_reset: str | None = None
    auto_commit: bool | None = None
    fetch_min_bytes: int = 1
    """A read waits for so many bytes; -1: until its timeout or its limit of bytes."""
    read_timeout_ms: int = DEFAULT_READ_TIMEOUT_MS


class Subscription(NamedTuple):
    """Topics, or a regular expression that must match the whole of their names."""

    topics: tuple[str, ...] | None
    pattern: str | None


class Positions(NamedTuple):
    """The next offset to read, or the time of the next record in milliseconds since 1970."""

    offsets: Mapping[TopicPartition, int]
    times: Mapping[TopicPartition, int]


class Read(NamedTuple):
    """How long and how much one request reads."""

    timeout_ms: int
    max_bytes: int
    max_records: int
    min_bytes: int


def new_instance(body: JsonObject) -> NewInstance:
    """POST /consumers/{group}; everything in the body is optional."""
    body.allow(
        *("id", "name", "format", "auto.offset.reset", "auto.commit.enable"),
        *("fetch.min.bytes", "consumer.request.timeout.ms"),
    )
    name = body.text("id") or body.text("name")
    if name is not None and len(name) > MAX_NAME_LENGTH:
        raise invalid(body.name("name"), f"at most {MAX_NAME_LENGTH} characters")
    read_timeout_ms = _config(lambda: body.integer("consumer.request.timeout.ms"))
    fetch_min_bytes = _config(lambda: body.integer("fetch.min.bytes", -1, MAX_FETCH_MIN_BYTES))
    return NewInstance(
        name,
        _format(body),
        _choice(body, "auto.offset.reset", {reset: reset for reset in RESETS}),
        _auto_commit(body),
        1 if fetch_min_bytes is None else fetch_min_bytes,
        DEFAULT_READ_TIMEOUT_MS if read_timeout_ms is None else read_timeout_ms,
    )


def subscription(body: JsonObject) -> Subscription:
    """POST …/subscription"""
    body.allow("topics", "topic_pattern")
    topics = body.texts("topics", MAX_TOPICS)
    pattern = body.text("topic_pattern")
    if (topics is None) == (pattern is None):
        raise invalid("topics, topic_pattern", "one of the two")
    if topics is not None and not topics:
        raise invalid("topics", "at least one topic")
    if pattern is not None and len(pattern) > MAX_PATTERN_LENGTH:
        raise invalid("topic_pattern", f"at most {MAX_PATTERN_LENGTH} characters")
    return Subscription(None if topics is None else tuple(topics), pattern)


def partitions(body: JsonObject) -> list[TopicPartition]:
    """POST …/assignments, …/positions/beginning, …/positions/end; GET …/offsets"""
    body.allow("partitions")
    rows = body.objects("partitions", MAX_PARTITIONS)
    if rows is None:
        raise invalid("partitions", 'an array such as [{"topic": "orders", "partition": 0}]')
    for row in rows:
        row.allow("topic", "partition")
    return [_topic_partition(row) for row in rows]


def handled_offsets(body: JsonObject) -> dict[TopicPartition, OffsetAndMetadata]:
    """POST …/offsets: each names the last record handled; what is committed is the next one."""
    body.allow("offsets")
    rows = _offset_rows(body)
    return {
        _topic_partition(row): OffsetAndMetadata(
            row.required_integer("offset", 0, INT64_MAX - 1) + 1, row.text("metadata") or ""
        )
        for row in rows
    }


def positions(body: JsonObject) -> Positions:
    """POST …/positions: where each partition is read next."""
    body.allow("offsets", "timestamps")
    time_rows = body.objects("timestamps", MAX_PARTITIONS)
    for row in time_rows or []:
        row.allow("topic", "partition", "timestamp", "metadata")
    is_by_time = body.get("offsets") is None and time_rows is not None
    offset_rows = [] if is_by_time else _offset_rows(body)
    return Positions(
        {
            _topic_partition(row): row.required_integer("offset", 0, INT64_MAX)
            for row in offset_rows
        },
        {_topic_partition(row): _time_ms(row) for row in time_rows or []},
    )


def read(query: Mapping[str, str], instance: NewInstance, most: Read) -> Read:
    """GET …/records?timeout=&max_bytes=; a value of 0 or less means the default."""
    timeout_ms = _number(query, "timeout")
    max_bytes = _number(query, "max_bytes")
    longest_ms = min(instance.read_timeout_ms if timeout_ms <= 0 else timeout_ms, most.timeout_ms)
    return Read(
        longest_ms,
        most.max_bytes if max_bytes <= 0 else min(max_bytes, most.max_bytes),
        most.max_records,
        INT64_MAX if instance.fetch_min_bytes < 0 else instance.fetch_min_bytes,
    )


def _offset_rows(body: JsonObject) -> list[JsonObject]:
    rows = body.objects("offsets", MAX_PARTITIONS)
    if rows is None:
        shown = 'an array such as [{"topic": "orders", "partition": 0, "offset": 20}]'
        raise invalid("offsets", shown)
    for row in rows:
        row.allow("topic", "partition", "offset", "metadata")
    return rows


def _topic_partition(row: JsonObject) -> TopicPartition:
    return TopicPartition(row.required_text("topic"), row.required_integer("partition"))


def _time_ms(row: JsonObject) -> int:
    """Milliseconds, or a time such as 2026-05-01T00:00:00Z."""
    expected = "a time such as 2026-05-01T00:00:00Z, or milliseconds since 1970"
    value = row.get("timestamp")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT64_MAX:
        return value
    try:
        time = datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise invalid(row.name("timestamp"), expected) from None
    if time.tzinfo is None:
        raise invalid(row.name("timestamp"), f"{expected}; this one has no time zone")
    return max(0, int(time.timestamp() * 1e3))


def _format(body: JsonObject) -> Format:
    name = body.text("format")
    formats = {format.value: format for format in Format}
    if name is None:
        return Format.BINARY
    if name.lower() not in formats:
        raise invalid(body.name("format"), f"{' or '.join(formats)}, not {name!r}")
    return formats[name.lower()]


def _auto_commit(body: JsonObject) -> bool | None:
    """A text, as the API has it, or a boolean."""
    if isinstance(value := body.get("auto.commit.enable"), bool):
        return value
    return _choice(body, "auto.commit.enable", {"true": True, "false": False})


def _choice(body: JsonObject, field: str, choices: Mapping[str, ValueT]) -> ValueT | None:
    value = _config(lambda: body.text(field))
    if value is None:
        return None
    if value.lower() not in choices:
        expected = f"{' or '.join(choices)}, not {value!r}"
        raise HttpError(INVALID_CONSUMER_CONFIG, f"{body.name(field)}: expected {expected}")
    return choices[value.lower()]


def _config(value: Callable[[], ValueT]) -> ValueT:
    """A consumer's setting, whose errors have a code of their own."""
    try:
        return value()
    except HttpError as error:
        raise HttpError(INVALID_CONSUMER_CONFIG, error.message) from None


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "-1")
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise invalid(f"{name} in the query", f"an integer up to {INT32_MAX}, not {text[:40]!r}")
    return int(text)
