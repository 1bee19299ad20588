"""A principal as bytes, as Kafka's DefaultKafkaPrincipalBuilder writes it into an Envelope.

A version (two bytes) and the message DefaultPrincipalData: type, name, and whether a delegation
token was used. No I/O.
"""

from __future__ import annotations

from typing import Final

from kio.schema.default_principal_data.v0.data import DefaultPrincipalData
from kio.serial import entity_reader

from ottla.model.errors import Disconnect
from ottla.protocol.encode import writer_of

VERSION: Final = b"\0\0"
MAX_BYTES: Final = 32 << 10


def encode(principal: str) -> bytes:
    """From the form `User:name`."""
    kind, _, name = principal.partition(":")
    out = bytearray(VERSION)
    writer_of(DefaultPrincipalData)(
        {"type_": kind, "name": name, "token_authenticated": False}, out
    )
    return bytes(out)


def decode(data: bytes) -> str:
    """To the form `User:name`; Disconnect if the bytes are no principal."""
    if data[:2] != VERSION or len(data) > MAX_BYTES:
        raise Disconnect("unknown version of a forwarded principal")
    try:
        principal, size = entity_reader(DefaultPrincipalData)(data, len(VERSION))
    except Exception as error:
        raise Disconnect(f"cannot decode a forwarded principal: {error}") from None
    if len(VERSION) + size != len(data):
        raise Disconnect("a forwarded principal has the wrong length")
    return f"{principal.type_}:{principal.name}"
