"""The records that every client writes and reads back, and a digest to compare them by.

Owns: what record number `i` looks like. `java/InteropDriver.java` says the same in Java.
Never: talks to a broker.

Records hold what brokers and clients get wrong: null and missing keys, null and empty values,
repeated header names, null and empty headers, their own timestamps.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

PLAIN: Final[Headers] = (("name", b"first"), ("empty", b""), ("name", b"again"))
HEADERS: Final[Mapping[str, Headers]] = {
    "without": (),
    "plain": PLAIN,
    "null": (*PLAIN, ("null", None)),  # not every client can write these
}
STEP_MS: Final = 10  # between one record's timestamp and the next one's
_LENGTH: Final = struct.Struct(">i")
_TIMESTAMP: Final = struct.Struct(">q")


class Sample(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


@dataclass(frozen=True)
class Series:
    """`count` records, the first stamped `base_ms`; -1 leaves the stamps to the client."""

    count: int
    base_ms: int
    headers: str = "plain"  # one of HEADERS
    value_bytes: int = 0

    def __iter__(self) -> Iterator[Sample]:
        headers = HEADERS[self.headers]
        for i in range(self.count):
            yield Sample(key(i), self.value(i), headers, self.timestamp(i))

    def value(self, i: int) -> bytes | None:
        if i % 11 == 10:
            return None
        return f"value-{i}-".ljust(self.value_bytes or i % 150, "x").encode()

    def timestamp(self, i: int) -> int:
        return -1 if self.base_ms < 0 else self.base_ms + i * STEP_MS


def key(i: int) -> bytes | None:
    if i % 7 == 6 and i % 11 != 10:  # some clients refuse a record with neither key nor value
        return None
    return f"key-{i % 1000}".encode()


def digest(samples: Iterable[Sample], *, stamped: bool) -> str:
    """Equal for equal records in the same order; without `stamped` whatever their timestamps."""
    state = hashlib.sha256()
    for sample in samples:
        state.update(_TIMESTAMP.pack(sample.timestamp if stamped else -1))
        state.update(_sized(sample.key) + _sized(sample.value))
        state.update(_LENGTH.pack(len(sample.headers)))
        for name, value in sample.headers:
            state.update(_sized(name.encode()) + _sized(value))
    return state.hexdigest()


def _sized(data: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if data is None else _LENGTH.pack(len(data)) + data
