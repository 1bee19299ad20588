"""Lines to records that can be sent.

Pure. A line is a value; with a separator a key and a value; or a JSON object with everything a
record has. What cannot be read is a UserError that names the line.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from ottla.cli.argument_parsing import INT32_MAX, INT64_MAX
from ottla.model.errors import UserError

Headers = tuple[tuple[str, bytes | None], ...]
FIELDS: Final = frozenset(
    {"key", "value", "headers", "partition", "timestamp", "key_base64", "value_base64"}
)
# What `consume --json` shows beside them, so that its lines can be sent again.
PASSED_OVER: Final = frozenset({"topic", "offset", "timestamp_type"})


class ParsedRecord(NamedTuple):
    """A record before it is sent."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class InputFormat(NamedTuple):
    """How lines are read. `null` is the text that stands for no value at all."""

    key_separator: bytes | None = None
    null: bytes | None = None
    headers: Headers = ()
    is_json: bool = False


def drafts(lines: Iterable[bytes], how: InputFormat) -> Iterator[ParsedRecord]:
    """A record for each line; with JSON empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        text = line.rstrip(b"\r\n") if line.endswith(b"\n") else line
        if not how.is_json:
            yield from_text(text, how, number)
        elif text.strip():
            draft = from_json(text, number)
            yield draft._replace(headers=draft.headers + how.headers)


def from_text(text: bytes, how: InputFormat, number: int) -> ParsedRecord:
    key: bytes | None = None
    value: bytes | None = text
    if how.key_separator is not None:
        key, found, value = text.partition(how.key_separator)
        if not found:
            separator = how.key_separator.decode(errors="replace")
            raise UserError(f"line {number}: no key separator {separator!r} found")
    if how.null is not None:
        key = None if key == how.null else key
        value = None if value == how.null else value
    return ParsedRecord(value, key, how.headers)


def from_json(text: bytes, number: int) -> ParsedRecord:
    """`{"key": ..., "value": ..., "headers": {...}, "partition": 0, "timestamp": 1700000000000}`.

    Text is sent as it is, anything else as JSON; `key_base64` and `value_base64` hold any bytes.
    """
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise UserError(f"line {number}: not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UserError(f'line {number}: expected an object such as {{"key": "a", "value": 1}}')
    unknown = sorted(fields.keys() - FIELDS - PASSED_OVER)
    if unknown:
        raise UserError(f"line {number}: {unknown[0]}: expected one of {', '.join(sorted(FIELDS))}")
    return ParsedRecord(
        _bytes(fields, "value", number),
        _bytes(fields, "key", number),
        _headers(fields.get("headers"), number),
        _whole(fields, "partition", number, INT32_MAX),
        _whole(fields, "timestamp", number, INT64_MAX),
    )


def header(option: str, text: str) -> tuple[str, bytes | None]:
    """`name=value`, or `name` for a header without a value."""
    name, equals, value = text.partition("=")
    if not name:
        raise UserError(f"{option} {text!r}: expected NAME=VALUE")
    return name, value.encode() if equals else None


def _bytes(fields: dict[str, Any], name: str, number: int) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise UserError(f"line {number}: {name}_base64: expected base64") from None
    value = fields.get(name)
    if value is None:
        return None
    try:
        return value.encode() if isinstance(value, str) else json.dumps(value).encode()
    except UnicodeEncodeError:
        raise UserError(
            f"line {number}: {name}: unpaired surrogate; expected Unicode text"
        ) from None


def _headers(given: Any, number: int) -> Headers:
    """An object, or a list of pairs where a name comes twice."""
    pairs = given.items() if isinstance(given, dict) else given or ()
    try:
        return tuple((str(name), None if v is None else str(v).encode()) for name, v in pairs)
    except (TypeError, ValueError):  # also where a text is half of a surrogate pair
        raise UserError(f'line {number}: headers: expected {{"name": "value"}}') from None


def _whole(fields: dict[str, Any], name: str, number: int, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UserError(f"line {number}: {name}: expected a whole number from 0 on")
    if value > most:
        raise UserError(f"line {number}: {name}: {value} is too large; the largest is {most}")
    return value
