"""Records to lines.

Pure. Text that is not UTF-8 is shown with the bytes that are not in escapes, never dropped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from ottla.cli.argument_parsing import shown_time
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

NULL: Final = "null"


class Format(Enum):
    """What a record looks like."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    RAW = "raw"


class Part(Enum):
    """What may be shown of a record before its value, in this order."""

    TIMESTAMP = "timestamp"
    PARTITION = "partition"
    OFFSET = "offset"
    HEADERS = "headers"
    KEY = "key"


def parts(option: str, text: str | None) -> frozenset[Part]:
    """`key,offset`: which parts an option names."""
    words = text.split(",") if text else []
    known = {part.value for part in Part}
    for word in words:
        if word not in known:
            raise UserError(f"{option} {word!r}: expected some of {', '.join(sorted(known))}")
    return frozenset(Part(word) for word in words)


Show = Callable[[Record[bytes, bytes]], bytes]


def shower(format: Format, parts: frozenset[Part]) -> Show:
    """The function that makes the bytes of one record, its line's end included."""
    match format:
        case Format.JSON:
            return lambda record: json.dumps(as_json(record), ensure_ascii=False).encode() + b"\n"
        case Format.RAW:
            return lambda record: record.value or b""
        case Format.HEX:
            return lambda record: _line(record, parts, bytes.hex)
        case Format.TEXT:
            return lambda record: _line(record, parts, _readable)


def as_json(record: Record[bytes, bytes]) -> dict[str, object]:
    """Everything a record has; bytes that are no text are base64, under a name that says so."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp if record.timestamp >= 0 else None,
        **_text("key", record.key),
        **_text("value", record.value),
        "headers": _headers(record),
    }


def _headers(record: Record[bytes, bytes]) -> Mapping[str, object] | list[list[str | None]]:
    """An object, or a list of pairs where a name comes twice."""
    pairs = [[name, None if value is None else _readable(value)] for name, value in record.headers]
    named = {str(name): value for name, value in pairs}
    return named if len(named) == len(pairs) else pairs


def _text(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _readable(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


def _line(
    record: Record[bytes, bytes], parts: frozenset[Part], text: Callable[[bytes], str]
) -> bytes:
    cells = [_part(record, part, text) for part in Part if part in parts]
    cells.append(NULL if record.value is None else text(record.value))
    return ("\t".join(cells) + "\n").encode()


def _part(record: Record[bytes, bytes], part: Part, text: Callable[[bytes], str]) -> str:
    match part:
        case Part.TIMESTAMP:
            return shown_time(record.timestamp) or NULL
        case Part.PARTITION:
            return f"{record.topic}-{record.partition}"
        case Part.OFFSET:
            return str(record.offset)
        case Part.HEADERS:
            pairs = (f"{k}={NULL if v is None else text(v)}" for k, v in record.headers)
            return ",".join(pairs) or "-"
        case Part.KEY:
            return NULL if record.key is None else text(record.key)
