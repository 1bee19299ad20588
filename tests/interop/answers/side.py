"""One broker that is asked, by connections that send exactly what they are told.

Owns: the connections of a scenario, and the values saved from replies. Never: judges a reply.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

from kio.schema.index import api_key_map

from ottla.protocol import wire
from ottla.protocol.encode import writer_of
from ottla.protocol.length_check import skip_tags
from ottla.protocol.schema import Entity, MessageKind, fields_of, message, versions
from tests.raw_requests import Line

KEYS: Final = {
    "".join(part.capitalize() for part in name.split("_")): key for key, name in api_key_map.items()
} | {"LeaderAndIsr": 4, "StopReplica": 5, "UpdateMetadata": 6, "ControlledShutdown": 7}
CLOSED: Final = "the connection was closed"
SILENT: Final = "no reply came"
_WAIT_S: Final = 15.0
_HEADER: Final = Struct(">hhih")
_CLIENT: Final = b"answers"
_WITHOUT_CLIENT: Final = (KEYS["ControlledShutdown"], 0)  # its header has no client id
_numbers: Final = itertools.count(1)


class Reply(NamedTuple):
    """What came back: the decoded message, or the word for what came instead."""

    api: str
    version: int
    entity: Any  # kio's object; None when there is none
    instead: str = ""


class Side:
    """One broker and, for the time of a scenario, the connections to it."""

    def __init__(self, name: str, address: str, wait_s: float = _WAIT_S) -> None:
        self.name = name
        self.address = address
        self._wait_s = wait_s
        self.saved: dict[str, Any] = {}
        self.fresh: dict[str, str] = {}
        self._lines: dict[str, Line] = {}
        self._asked: dict[str, tuple[str, int]] = {}

    def begin(self, number: int) -> None:
        """A new scenario: nothing is remembered, and no connection is open."""
        self.end()
        self.saved, self.fresh, self._number = {}, {}, number

    def end(self) -> None:
        for line in self._lines.values():
            line.socket.close()
        self._lines.clear()
        self._asked.clear()

    def send(self, line: str, api: str, version: int, fields: Mapping[str, Any]) -> None:
        request = encode(KEYS[api], version, resolved(fields, self.resolve))
        self._asked[line] = (api, version)
        try:
            self._line(line).send(request)
        except OSError:
            self._drop(line)

    def receive(self, line: str) -> Reply:
        """The reply to what was asked last on this connection."""
        api, version = self._asked.pop(line)
        frame = self._frame(line)
        if isinstance(frame, str):
            return Reply(api, version, None, frame)
        return Reply(api, version, decode(KEYS[api], version, frame))

    def ask(self, line: str, api: str, version: int, fields: Mapping[str, Any]) -> Reply:
        self.send(line, api, version, fields)
        return self.receive(line)

    def ask_bytes(self, data: bytes) -> Reply:
        """Bytes on a connection of their own."""
        with Line(self.address, self._wait_s) as line:
            self._lines["bytes"] = line
            line.send(data)
            frame = self._frame("bytes")
            self._lines.pop("bytes", None)
        return Reply("bytes", 0, None, frame if isinstance(frame, str) else "a reply")

    def resolve(self, name: str) -> Any:
        """A saved value, or a name that is fresh in this scenario."""
        if name in self.saved:
            return self.saved[name]
        return self.fresh.setdefault(name, f"{name}-{self._number}")

    def _line(self, name: str) -> Line:
        if name not in self._lines:
            self._lines[name] = Line(self.address, self._wait_s)
        return self._lines[name]

    def _frame(self, name: str) -> bytes | str:
        if name not in self._lines:
            return CLOSED
        try:
            frame = self._lines[name].receive()
        except TimeoutError:
            self._drop(name)
            return SILENT
        except OSError:
            frame = None
        if frame is None:
            self._drop(name)
            return CLOSED
        return frame

    def _drop(self, name: str) -> None:
        line = self._lines.pop(name, None)
        if line is not None:
            line.socket.close()


def resolved(value: Any, resolve: Any) -> Any:
    """A request's fields with every `$name`, and all that is made late, put in."""
    if isinstance(value, str):
        return resolve(value[1:]) if value.startswith("$") else value
    if isinstance(value, Mapping):
        return {key: resolved(inner, resolve) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [resolved(inner, resolve) for inner in value]
    if hasattr(value, "resolve"):
        return value.resolve(lambda inner: resolved(inner, resolve))
    return value


def encode(key: int, version: int, fields: Mapping[str, Any]) -> bytes:
    """A framed request. A version that no schema has goes out in the newest one that has."""
    known = min(max(version, versions(key)[0]), versions(key)[-1])
    entity = message(key, known, MessageKind.REQUEST)
    out = bytearray(4) + _HEADER.pack(key, version, next(_numbers), len(_CLIENT)) + _CLIENT
    if (key, version) == _WITHOUT_CLIENT:
        del out[4 + _HEADER.size - 2 :]
    if entity.__flexible__:
        out += b"\0"
    writer_of(entity)(_complete(entity, fields, _known_names(key)), out)
    out[:4] = (len(out) - 4).to_bytes(4, "big")
    return bytes(out)


def decode(key: int, version: int, frame: bytes) -> Any:
    known = min(max(version, versions(key)[0]), versions(key)[-1])
    entity = message(key, known, MessageKind.RESPONSE)
    if known != version:  # only ApiVersions answers: in its first version
        return wire.decode_reply(key, 0, memoryview(frame))
    flexible = entity.__flexible__ and key != wire.API_VERSIONS
    at = skip_tags(memoryview(frame), 4)[0] if flexible else 4
    found, size = wire._reply_reader(key, version)[1](memoryview(frame), at)
    assert at + size == len(frame), f"{key} v{version}: {len(frame) - at - size} bytes too many"
    return found


def _complete(entity: Entity, fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """All fields of a version: those given, the others null, 0 or empty."""
    unknown = set(fields) - known
    assert not unknown, f"{entity.__name__}: no version has {sorted(unknown)}"
    whole: dict[str, Any] = {}
    for field in fields_of(entity):
        value = fields.get(field.name, field.neutral())
        if field.struct is not None and field.name in fields and value is not None:
            struct = field.struct
            value = (
                [_complete(struct, inner, known) for inner in value]
                if field.is_array
                else _complete(struct, value, known)
            )
        whole[field.name] = value
    return whole


def _known_names(key: int) -> frozenset[str]:
    names: set[str] = set()
    for version in versions(key):
        _collect(message(key, version, MessageKind.REQUEST), names)
    return frozenset(names)


def _collect(entity: Entity, names: set[str]) -> None:
    for field in fields_of(entity):
        names.add(field.name)
        if field.struct is not None:
            _collect(field.struct, names)
