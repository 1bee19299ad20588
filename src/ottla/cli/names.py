"""What people write to name things on the command line: partitions, offsets, moments, matches.

Pure. Everything that cannot be read is a UserError which says what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from ottla.client.admin.offsets import OffsetSpec
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_SPECS: Final = {
    "earliest": OffsetSpec.EARLIEST,
    "latest": OffsetSpec.LATEST,
    "max-timestamp": OffsetSpec.MAX_TIMESTAMP,
}


def moment_ms(option: str, text: str, now_ms: int) -> int:
    """A time: ISO 8601 (local unless it says otherwise), milliseconds since 1970, or `2h` ago."""
    if text.isascii() and text.isdigit():
        return int(text)
    ago = _DURATION.fullmatch(text.removesuffix(" ago").removesuffix("-ago").removeprefix("-"))
    if ago is not None:
        return now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    try:
        return (datetime.fromisoformat(text).astimezone(UTC) - _EPOCH) // _MS
    except ValueError:
        raise UserError(
            f"{option} {text!r}: expected a time such as 2026-01-31T12:00:00, milliseconds since "
            "1970, or 2h for two hours ago"
        ) from None


def duration_ms(option: str, text: str) -> int:
    """A length of time: `500ms`, `30s`, `5m`, `2h`, `7d`, or plain milliseconds."""
    if text.isascii() and text.isdigit():
        return int(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UserError(f"{option} {text!r}: expected a duration such as 500ms, 30s, 5m, 2h or 7d")
    return int(found[1]) * _UNITS_MS[found[2]]


def offset_spec(option: str, text: str, now_ms: int) -> OffsetSpec | int:
    """Which offset is meant: earliest, latest, max-timestamp, or the first at a time."""
    return _SPECS[text] if text in _SPECS else moment_ms(option, text, now_ms)


def topic_partitions(option: str, text: str) -> tuple[str, tuple[int, ...] | None]:
    """`orders`, or `orders:0,2`: a topic with all its partitions, or with some."""
    topic, colon, listed = text.rpartition(":")
    if not colon:
        return text, None
    numbers = listed.split(",")
    if not topic or not all(number.isascii() and number.isdigit() for number in numbers):
        raise UserError(f"{option} {text!r}: expected TOPIC or TOPIC:PARTITION,PARTITION")
    return topic, tuple(int(number) for number in numbers)


def pattern(option: str, text: str) -> re.Pattern[str]:
    """A regular expression that the whole of a name must match."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UserError(f"{option} {text!r}: expected a regular expression, but {error}") from None


def matching(names: Iterable[str], wanted: re.Pattern[str] | None) -> list[str]:
    return [name for name in names if wanted is None or wanted.fullmatch(name)]


def shown_time(ms: int | None) -> str | None:
    """A moment as people read it, in UTC; None for what is no moment."""
    if ms is None or ms < 0:
        return None
    moment = _EPOCH + ms * _MS
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sorted_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return sorted(partitions, key=lambda one: (one.topic, one.partition))
