"""What people write to name things on the command line: partitions, offsets, moments, matches.

Pure. Everything that cannot be read is a UserError which says what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from ottla.client.admin.offsets import OffsetSpec
from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
TOPIC_NAME_MAX: Final = 249
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_SPECS: Final = {
    "earliest": OffsetSpec.EARLIEST,
    "latest": OffsetSpec.LATEST,
    "max-timestamp": OffsetSpec.MAX_TIMESTAMP,
}


def whole_number(option: str, text: str, expected: str, *, most: int = INT64_MAX) -> int:
    """A decimal number from 0 to `most`: what a field of the protocol can hold."""
    if not text.isascii() or not text.isdigit():
        raise UserError(f"{option} {text!r}: expected {expected}")
    digits = text.lstrip("0")
    if len(digits) > len(str(most)) or int(digits or "0") > most:
        raise UserError(f"{option} {shorten(text)}: too large; the largest is {most}")
    return int(digits or "0")


def whole_value(value: object, *, most: int = INT64_MAX) -> int:
    """A number in a file, which may be -1; ValueError where the protocol cannot hold it."""
    number = int(value)  # type: ignore[call-overload]  # what is no number raises TypeError
    if not -1 <= number <= most:
        raise ValueError(f"{number} is not from -1 to {most}")
    return int(number)


class NotATime(UserError):
    """A text that does not have the form of a time."""


def shorten(text: str, most: int = 40) -> str:
    """A text as an error message repeats it."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def moment_ms(option: str, text: str, now_ms: WallMs) -> int:
    """A time: ISO 8601 (local unless it says otherwise), milliseconds since 1970, or `2h` ago."""
    if text.isascii() and text.isdigit():
        return whole_number(option, text, "milliseconds since 1970")
    ago = _DURATION.fullmatch(text.removesuffix(" ago").removesuffix("-ago").removeprefix("-"))
    if ago is not None:
        length_ms = _length_ms(option, text, ago)
        if length_ms > now_ms:
            raise UserError(f"{option} {text!r}: that is before 1970; use earliest instead")
        return now_ms - length_ms
    try:
        moment = (datetime.fromisoformat(text).astimezone(UTC) - _EPOCH) // _MS
    except (ValueError, OverflowError):
        raise NotATime(
            f"{option} {text!r}: expected a time such as 2026-01-31T12:00:00, milliseconds since "
            "1970, or 2h for two hours ago"
        ) from None
    if moment < 0:
        raise UserError(f"{option} {text!r}: that is before 1970; use earliest instead")
    return moment


def duration_ms(option: str, text: str) -> int:
    """A length of time: `500ms`, `30s`, `5m`, `2h`, `7d`, or plain milliseconds."""
    if text.isascii() and text.isdigit():
        return whole_number(option, text, "milliseconds")
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UserError(f"{option} {text!r}: expected a duration such as 500ms, 30s, 5m, 2h or 7d")
    return _length_ms(option, text, found)


def _length_ms(option: str, text: str, found: re.Match[str]) -> int:
    number, unit = found.groups()
    length_ms = whole_number(option, number, "a duration") * _UNITS_MS[unit]
    if length_ms > INT64_MAX:
        raise UserError(f"{option} {text!r}: too large; the largest is {INT64_MAX} ms")
    return length_ms


def offset_spec(option: str, text: str, now_ms: WallMs) -> OffsetSpec | int:
    """Which offset is meant: earliest, latest, max-timestamp, or the first at a time."""
    if text in _SPECS:
        return _SPECS[text]
    try:
        return moment_ms(option, text, now_ms)
    except NotATime as error:
        raise UserError(f"{error}, or one of {', '.join(_SPECS)}") from None


def topic_partitions(option: str, text: str) -> tuple[str, tuple[int, ...] | None]:
    """`orders`, or `orders:0,2`: a topic with all its partitions, or with some."""
    topic, colon, listed = text.rpartition(":")
    if not colon:
        return text, None
    numbers = listed.split(",")
    if not topic or not all(number.isascii() and number.isdigit() for number in numbers):
        raise UserError(f"{option} {text!r}: expected TOPIC or TOPIC:PARTITION,PARTITION")
    return topic, tuple(
        whole_number(option, number, "a partition", most=INT32_MAX) for number in numbers
    )


def require_topic_name(option: str, name: str) -> None:
    """Refuse what no topic can be called, before a broker is asked."""
    if not _TOPIC_NAME.fullmatch(name) or name in (".", "..") or len(name) > TOPIC_NAME_MAX:
        raise UserError(
            f"{option} {shorten(name)}: invalid topic name: allowed are letters, digits, '.', "
            f"'_' and '-', at most {TOPIC_NAME_MAX} of them"
        )


def pattern(option: str, text: str) -> re.Pattern[str]:
    """A regular expression that the whole of a name must match."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UserError(f"{option} {text!r}: expected a regular expression, but {error}") from None


def matching(names: Iterable[str], regex: re.Pattern[str] | None) -> list[str]:
    return [name for name in names if regex is None or regex.fullmatch(name)]


def shown_time(ms: int | None) -> str | None:
    """A moment as people read it, in UTC; None for what is no moment."""
    if ms is None or ms < 0:
        return None
    moment = _EPOCH + ms * _MS
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sorted_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return sorted(partitions, key=lambda one: (one.topic, one.partition))
