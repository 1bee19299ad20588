"""A frame to the typed request of its version, and a reply's fields to a frame.

The adapter over kio: handlers see one form of an API, whatever version the client uses. Owns the
framing and both header formats. Never trusts a request: every malformed one raises `Disconnect`,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple, TypeAlias

from kio.serial import entity_reader

from ottla.model.errors import Disconnect
from ottla.protocol.chunked_encoding import is_large, write_in_pieces
from ottla.protocol.encode import Encoded, Fields, Write, ms, writer_of
from ottla.protocol.length_check import (
    MAX_VALUES,
    Walk,
    check,
    check_in_pieces,
    skip_tags,
    walk_in_pieces_of,
    walk_of,
)
from ottla.protocol.schema import (
    Entity,
    KioMessage,
    MessageKind,
    UnknownApi,
    fields_of,
    message,
    read_missing_fields_as_defaults,
)
from ottla.protocol.unknown_tags import REFUSAL, without_unknown_tags

__all__ = [
    "FLEXIBLE_SINCE",
    "Call",
    "Encoded",
    "Fields",
    "check_request",
    "decode",
    "decode_reply",
    "encode_part",
    "encode_request",
    "ms",
    "parse_call",
    "part_in_pieces",
    "read_request",
    "reply",
    "reply_in_pieces",
    "reply_is_large",
]

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7

# The first version of each API whose headers have tagged fields, so that a header can be read
# without loading the message. An API that is not listed has none, or is not served.
FLEXIBLE_SINCE: Final = {
    0: 9, 1: 12, 2: 6, 3: 9, 4: 4, 5: 2, 6: 6, 7: 3, 8: 8, 9: 6, 10: 3, 11: 6, 12: 4, 13: 4, 14: 4,
    15: 5, 16: 3, 18: 3, 19: 5, 20: 4, 21: 2, 22: 2, 23: 4, 24: 3, 25: 3, 26: 3, 27: 1, 28: 3,
    29: 2, 30: 2, 31: 2, 32: 4, 33: 2, 34: 2, 35: 2, 36: 2, 37: 2, 38: 2, 39: 2, 40: 2, 41: 2,
    42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 48: 1, 49: 1, 50: 0, 51: 0, 56: 0, 57: 0, 60: 0, 61: 0,
    65: 0, 66: 0, 68: 0, 69: 0, 74: 0, 75: 0,
}  # fmt: skip
NEVER: Final = 0x7FFF

_HEADER: Final = Struct(">hhih")
_OLDEST_HEADER: Final = Struct(">hhi")
_FRAME: Final = Struct(">ii")
_MAX_REPLY_VALUES: Final = 1 << 40  # replies of a broker are bounded by their size


class Call:
    """The header of one request: API key, version, correlation id, client id."""

    __slots__ = ("body_at", "client_id", "correlation_id", "flexible", "key", "version")

    def __init__(
        self, key: int, version: int, correlation_id: int, client_id: str | None, body_at: int
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body_at = body_at
        self.flexible = version >= FLEXIBLE_SINCE.get(key, NEVER)

    def __repr__(self) -> str:
        return f"Call({self.key} v{self.version} #{self.correlation_id} {self.client_id!r})"


def parse_call(frame: memoryview) -> Call:
    """The header of a request frame (without its size), of any API and version."""
    try:
        key, version, correlation_id, size = _HEADER.unpack_from(frame)
    except StructError:
        return _parse_short(frame)
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return _parse_short(frame)
    if size < 0:
        if size != -1:
            raise Disconnect(f"client id has invalid length {size}")
        client_id, position = None, 10
    else:
        position = 10 + size
        if position > len(frame):
            raise Disconnect("request header is cut short")
        client_id = str(frame[10:position], "utf-8", "replace")
    call = Call(key, version, correlation_id, client_id, position)
    if call.flexible:
        try:
            call.body_at = position + 1 if not frame[position] else skip_tags(frame, position)[0]
        except IndexError:
            raise Disconnect("request header is cut short") from None
    return call


def _parse_short(frame: memoryview) -> Call:
    """The one request without a client id: the first version of ControlledShutdown."""
    if len(frame) >= _OLDEST_HEADER.size:
        key, version, correlation_id = _OLDEST_HEADER.unpack_from(frame)
        if key == CONTROLLED_SHUTDOWN and version == 0:
            return Call(key, version, correlation_id, None, _OLDEST_HEADER.size)
    raise Disconnect("request header is cut short")


def decode(call: Call, frame: memoryview, max_values: int = MAX_VALUES) -> KioMessage:
    """The request of this frame as kio's class of its version.

    Fields that this version lacks have their defaults. TooManyValues if it has more values than
    `max_values`: it may then be decoded in two steps, `check_request` and `read_request`.
    """
    reader = _request_reader(call.key, call.version)
    check(reader.walk, frame, call.body_at, max_values)
    return _read(reader, frame, call.body_at)


def check_request(call: Call, frame: memoryview) -> Generator[None, None, None]:
    """Raise Disconnect unless the frame has a complete, well-formed request; yields in between."""
    walk = walk_in_pieces_of(_request_reader(call.key, call.version).entity)
    return check_in_pieces(walk, frame, call.body_at)


def read_request(call: Call, frame: memoryview) -> KioMessage:
    """The request of a frame that `check_request` has accepted."""
    reader = _request_reader(call.key, call.version)
    return _read(reader, frame, call.body_at)


def decode_reply(key: int, version: int, frame: memoryview) -> KioMessage:
    """The reply in this frame (without its size) as kio's class of its version."""
    reader = _reply_reader(key, version)
    position = 4
    if _reply_is_flexible(key, version):
        try:
            position, _ = skip_tags(frame, position)
        except IndexError:
            raise Disconnect("reply header is cut short") from None
    check(reader.walk, frame, position, _MAX_REPLY_VALUES)
    return _read(reader, frame, position)


def reply(call: Call, fields: Fields) -> bytes:
    """The framed reply to `call`; fields that its version lacks are dropped."""
    write = _reply_writer(call.key, call.version)
    out = bytearray(_reply_header_size(call))
    write(fields, out)
    _FRAME.pack_into(out, 0, len(out) - 4, call.correlation_id)
    return bytes(out)


def reply_is_large(call: Call, fields: Fields) -> bool:
    """Whether the reply should be encoded in pieces."""
    return is_large(message(call.key, call.version, MessageKind.RESPONSE), fields)


def reply_in_pieces(call: Call, fields: Fields) -> Generator[None, None, bytearray]:
    """As `reply`, for a large one; yields between slices."""
    out = bytearray(_reply_header_size(call))
    yield from write_in_pieces(message(call.key, call.version, MessageKind.RESPONSE), fields, out)
    _FRAME.pack_into(out, 0, len(out) - 4, call.correlation_id)
    return out  # not copied: it may have tens of megabytes


def _reply_header_size(call: Call) -> int:
    """Including the frame's size."""
    return 9 if call.flexible and call.key != API_VERSIONS else 8


def encode_part(call: Call, array: str, fields: Fields) -> Encoded:
    """One struct of an array of the reply to `call`, to be used in any reply of its version."""
    out = bytearray()
    _part_writer(call.key, call.version, array)(fields, out)
    return Encoded(out)


def part_in_pieces(call: Call, array: str, fields: Fields) -> Generator[None, None, Encoded]:
    """As `encode_part`; yields between slices if it is large."""
    out = bytearray()
    yield from write_in_pieces(_part_struct(call.key, call.version, array), fields, out)
    return Encoded(out)


def encode_request(
    key: int, version: int, correlation_id: int, client_id: str | None, fields: Fields
) -> bytes:
    """A framed request; fields that the version lacks are dropped."""
    write = writer_of(message(key, version, MessageKind.REQUEST))
    out = bytearray(4)
    out += request_header(key, version, correlation_id, client_id)
    write(fields, out)
    out[:4] = (len(out) - 4).to_bytes(4, "big")
    return bytes(out)


def request_header(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request, without the size in front of it."""
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return _OLDEST_HEADER.pack(key, version, correlation_id)
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    tags = b"\0" if version >= FLEXIBLE_SINCE.get(key, NEVER) else b""
    return _HEADER.pack(key, version, correlation_id, size) + name + tags


def _reply_is_flexible(key: int, version: int) -> bool:
    # A client does not know the broker's versions when it reads an ApiVersions reply.
    return key != API_VERSIONS and version >= FLEXIBLE_SINCE.get(key, NEVER)


Read: TypeAlias = Callable[[memoryview, int], tuple[KioMessage, int]]


class Reader(NamedTuple):
    """How one version of a message is checked and read."""

    walk: Walk
    read: Read
    entity: Entity


@cache
def _request_reader(key: int, version: int) -> Reader:
    return _reader(key, version, MessageKind.REQUEST)


@cache
def _reply_reader(key: int, version: int) -> Reader:
    return _reader(key, version, MessageKind.RESPONSE)


def _reader(key: int, version: int, kind: MessageKind) -> Reader:
    try:
        entity = message(key, version, kind)
    except UnknownApi as unknown:
        raise Disconnect(str(unknown)) from None
    read_missing_fields_as_defaults(key, version, kind)
    return Reader(walk_of(entity), entity_reader(entity), entity)


@cache
def _reply_writer(key: int, version: int) -> Write:
    return writer_of(message(key, version, MessageKind.RESPONSE))


@cache
def _part_writer(key: int, version: int, array: str) -> Write:
    return writer_of(_part_struct(key, version, array))


@cache
def _part_struct(key: int, version: int, array: str) -> Entity:
    fields = fields_of(message(key, version, MessageKind.RESPONSE))
    struct = next(field.struct for field in fields if field.name == array)
    assert struct is not None, f"{array} is not an array of structs"
    return struct


def _read(reader: Reader, frame: memoryview, position: int) -> KioMessage:
    try:
        try:
            entity, _ = reader.read(frame, position)
        except Exception as error:
            if REFUSAL not in str(error):
                raise
            entity, _ = reader.read(without_unknown_tags(reader.entity, frame, position), 0)
    except Exception as error:
        # kio's errors for text that is not UTF-8, timestamps out of range and the like.
        raise Disconnect(f"cannot decode message: {error}") from None
    return entity
