"""Keys and values in requests and replies: base64 text or JSON values. Pure.

Owns: both forms, and the JSON of one record. Never: sends or reads a record.

Of a JSON value that is read, the bytes of the record go into the reply as they are, once they have
been checked: a number keeps all its digits.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from ottla.client.consumer.record import Record
from ottla.client.errors import SerializationError
from ottla.gateway.errors import invalid
from ottla.gateway.http_messages import dump_json
from ottla.gateway.json_fields import kind_of
from ottla.gateway.media_types import Format


def encode(value: object, format: Format, name: str) -> bytes | None:
    """The bytes of a record's key or value; `name` is the field's, for errors. None is null."""
    if value is None:
        return None
    if format is Format.JSON:
        try:
            return dump_json(value)
        except ValueError as error:
            raise invalid(name, f"a JSON value that UTF-8 can hold: {error}") from None
    if not isinstance(value, str):
        raise invalid(name, f"a base64 string, not {kind_of(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(name, "a base64 string of the standard alphabet, with padding") from None


def record_json(record: Record, format: Format) -> bytes:
    """One record of a reply; SerializationError if it does not have this form."""
    write = WRITERS[format]
    place = f"{record.topic}-{record.partition} offset {record.offset}"
    return b'{"topic":%b,"key":%b,"value":%b,"partition":%d,"offset":%d}' % (
        dump_json(record.topic),
        write(record.key, f"key of {place}"),
        write(record.value, f"value of {place}"),
        record.partition,
        record.offset,
    )


def size_of(record: Record) -> int:
    """The bytes of a record's key and value."""
    return len(record.key or b"") + len(record.value or b"")


def _base64(data: bytes | None, _: str) -> bytes:
    return b"null" if data is None else b'"%b"' % base64.b64encode(data)


def _checked_json(data: bytes | None, name: str) -> bytes:
    if data is None:
        return b"null"
    try:
        # Not bytes: of these the other encodings of JSON would be guessed.
        json.loads(data.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise SerializationError(
            f"{name} is not JSON: read it with a consumer instance of format binary, or skip it "
            "with POST …/positions"
        ) from None
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


WRITERS: Final[Mapping[Format, Callable[[bytes | None, str], bytes]]] = {
    Format.BINARY: _base64,
    Format.JSON: _checked_json,
}
