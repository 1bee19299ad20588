"""Fields of persisted records, read and written in Kafka's own encoding.

Pure. The records inside internal topics are not requests, so the wire schema does not have them;
they begin with an int16 version, and from some version on are "flexible": lengths are unsigned
varints, one more than the length, and each structure ends with tagged fields. Reading skips
unknown tags. Malformed bytes raise ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")


ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))


class Writer:
    """Appends fields in order; a nested structure has no version."""

    __slots__ = ("_flexible", "_parts")

    def __init__(self, version: int | None, *, flexible: bool = False) -> None:
        self._flexible = flexible
        self._parts = [] if version is None else [INT16.pack(version)]

    def int8(self, value: int) -> Writer:
        self._parts.append(value.to_bytes(1, "big", signed=True))
        return self

    def int16(self, value: int) -> Writer:
        self._parts.append(INT16.pack(value))
        return self

    def int32(self, value: int) -> Writer:
        self._parts.append(INT32.pack(value))
        return self

    def int64(self, value: int) -> Writer:
        self._parts.append(INT64.pack(value))
        return self

    def raw(self, value: bytes) -> Writer:
        """Bytes of a fixed size, such as a uuid."""
        self._parts.append(value)
        return self

    def string(self, value: str | None) -> Writer:
        return self._write_sized(None if value is None else value.encode(), INT16)

    def strings(self, values: Sequence[str]) -> Writer:
        """An array of strings; written without a call for each because there may be very many."""
        self.array(len(values))
        encoded = list(map(str.encode, values))
        sizes = list(map(len, encoded))
        if self._flexible and max(sizes, default=0) < 0x7F:
            parts = [b""] * (2 * len(values))
            parts[::2] = map(ONE_BYTE[1:].__getitem__, sizes)
            parts[1::2] = encoded
            self._parts += parts
        else:
            for data in encoded:
                self._write_sized(data, INT16)
        return self

    def blob(self, value: bytes | None) -> Writer:
        return self._write_sized(value, INT32)

    def array(self, length: int) -> Writer:
        """How many elements follow; the caller writes them."""
        return self.varint(length + 1) if self._flexible else self.int32(length)

    def tags(self, fields: Mapping[int, bytes] | None = None) -> Writer:
        """The end of a structure, with its tagged fields in the order of their tags."""
        if self._flexible:
            self.varint(len(fields or ()))
            for tag, value in sorted((fields or {}).items()):
                self.varint(tag).varint(len(value)).raw(value)
        return self

    def varint(self, value: int) -> Writer:
        if value < 0x80:
            self._parts.append(ONE_BYTE[value])
            return self
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        self._parts.append(bytes(out))
        return self

    def done(self) -> bytes:
        return b"".join(self._parts)

    def _write_sized(self, value: bytes | None, length: struct.Struct) -> Writer:
        if self._flexible:
            self.varint(0 if value is None else len(value) + 1)
        else:
            self._parts.append(length.pack(-1 if value is None else len(value)))
        if value is not None:
            self._parts.append(value)
        return self


class Reader:
    """Reads fields in order; ValueError where the bytes are malformed."""

    __slots__ = ("_at", "_data", "flexible", "version")

    def __init__(self, data: bytes, *, flexible_from: int = 1 << 15) -> None:
        self._data = data
        self._at = 0
        self.version = self.int16()
        self.flexible = self.version >= flexible_from

    @classmethod
    def inside(cls, data: bytes) -> Reader:
        """Over the value of a tagged field: a flexible structure, without a version."""
        reader = cls(INT16.pack(0) + data)
        reader.flexible = True
        return reader

    def int8(self) -> int:
        return int.from_bytes(self.raw(1), "big", signed=True)

    def int16(self) -> int:
        return self._int(INT16)

    def int32(self) -> int:
        return self._int(INT32)

    def int64(self) -> int:
        return self._int(INT64)

    def raw(self, size: int) -> bytes:
        start, end = self._at, self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError(
                f"field of {size} bytes at byte {start} exceeds the record "
                f"({len(self._data)} bytes)"
            )
        self._at = end
        return self._data[start:end]

    def string(self) -> str | None:
        size = self.varint() - 1 if self.flexible else self.int16()
        return None if size == -1 else self.raw(size).decode()

    def text(self) -> str:
        value = self.string()
        if value is None:
            raise ValueError(f"null string before byte {self._at}; the field is not nullable")
        return value

    def blob(self) -> bytes | None:
        size = self.varint() - 1 if self.flexible else self.int32()
        return None if size == -1 else self.raw(size)

    def array(self) -> int:
        """How many elements follow; a null array has none."""
        length = self.varint() - 1 if self.flexible else self.int32()
        if length > len(self._data) - self._at:
            raise ValueError(
                f"array of {length} elements at byte {self._at} exceeds the record "
                f"({len(self._data)} bytes)"
            )
        return max(0, length)

    def tags(self) -> dict[int, bytes]:
        """The tagged fields at the end of a structure, by tag."""
        if not self.flexible:
            return {}
        return {self.varint(): self.raw(self.varint()) for _ in range(self.varint())}

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise ValueError(f"varint before byte {self._at} has more than 5 bytes")

    def _int(self, kind: struct.Struct) -> int:
        try:
            (value,) = kind.unpack_from(self._data, self._at)
        except struct.error:
            raise ValueError(
                f"integer of {kind.size} bytes at byte {self._at} exceeds the record "
                f"({len(self._data)} bytes)"
            ) from None
        self._at += kind.size
        return int(value)
