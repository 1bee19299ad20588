"""Content types: in which form records are sent, and in which form a reply is wanted. Pure.

Owns: the names of the types, and the choice by the headers Content-Type and Accept. Never: encodes
a record; `record_formats` does.

A type such as `application/vnd.kafka.json.v2+json` names the form of keys and values (`json`), the
version of the API and the form of the whole. Types that a web page may send to another site without
asking first (forms, plain text, none) are refused with a body: see `browser_guard`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from ottla.gateway.errors import FORMAT_MISMATCH, HttpError

JSON: Final = "application/json"
V2: Final = "application/vnd.kafka.v2+json"


class Format(Enum):
    """The form of keys and values: base64 text, or JSON values."""

    BINARY = "binary"
    JSON = "json"

    @property
    def media_type(self) -> str:
        return f"application/vnd.kafka.{self.value}.v2+json"


BY_TYPE: Final[Mapping[str, Format]] = {format.media_type: format for format in Format}


def produced_format(content_type: str | None) -> Format:
    """The form of the records in a request that produces."""
    media_type = _media_type(content_type)
    if media_type not in BY_TYPE:
        raise _refuse_type(content_type, tuple(BY_TYPE))
    return BY_TYPE[media_type]


def check_json(content_type: str | None) -> None:
    """Refuse a body that is not declared as JSON."""
    if _media_type(content_type) not in (V2, JSON, *BY_TYPE):
        raise _refuse_type(content_type, (V2, JSON))


def _refuse_type(content_type: str | None, expected: Sequence[str]) -> HttpError:
    return HttpError(415, f"Content-Type {content_type or ''!r}: expected {' or '.join(expected)}")


def reply_type(accept: str | None) -> str:
    """The type of a reply without records."""
    chosen = _choose(accept, (V2, JSON, *BY_TYPE))
    if chosen is None:
        raise HttpError(406, f"Accept {accept!r}: expected {V2}, {JSON} or */*")
    return V2 if chosen in BY_TYPE else chosen


def records_type(accept: str | None, format: Format) -> str:
    """The type of a reply with records in this form."""
    chosen = _choose(accept, (format.media_type, V2, JSON))
    if chosen is None:
        raise HttpError(
            FORMAT_MISMATCH,
            f"Accept {accept!r}: this consumer instance has format {format.value}, expected "
            f"{format.media_type}",
        )
    return chosen


def error_type(accept: str | None) -> str:
    """The type of a refusal, which is sent whatever the client accepts."""
    chosen = _choose(accept, (V2, JSON))
    return chosen or JSON


def _choose(accept: str | None, offered: Sequence[str]) -> str | None:
    """The offered type of the highest quality; of equal ones the first."""
    if accept is None or not accept.strip():
        return offered[0]
    qualities = dict(_qualities(accept))
    best, best_quality = None, 0.0
    for media_type in offered:
        ranges = (media_type, f"{media_type.partition('/')[0]}/*", "*/*")
        quality = next((qualities[name] for name in ranges if name in qualities), 0.0)
        if quality > best_quality:
            best, best_quality = media_type, quality
    return best


def _qualities(accept: str) -> Iterator[tuple[str, float]]:
    for entry in accept.split(","):
        media_type, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        yield media_type, quality


def _media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()
