"""A sorted file of fixed-size pairs, of which only the newest are kept in memory.

Owns the layout both indexes share: big-endian (key, value) pairs, keys rising. Never knows what
keys and values mean, and never syncs by itself: an index is derived data, so the segment writes
it out when it is closed and the flush that follows makes it durable.

The newest entries (the warm section, at least the last 8192 bytes once there are as many) are in
memory, where appends and nearly all lookups happen. The rest is found by a binary search over
blocks of the file, a few small reads; the block that was found is kept, because a reader that
catches up asks for its neighbours next. (A memory map of the whole file, as elsewhere, would keep
a descriptor per file and touch cold pages as it grows.)
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from pathlib import Path
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from ottla.log.files import Disk, File, OutOfResources

WARM_BYTES: Final = 8_192


class CorruptIndex(Exception):
    """An index file that cannot be what was written; it is rebuilt from the log."""


class _Block(NamedTuple):
    """A piece of the file: the keys it begins with, and that the next piece begins with."""

    first_key: int
    next_key: int
    content: bytes


class SparseIndex:
    """Pairs of (key, value), both relative to whatever the subclass decides."""

    ENTRY: ClassVar[Struct]
    CODES: ClassVar[tuple[str, str]]  # array type codes of key and value

    __slots__ = ("_block", "_disk", "_file", "_keys", "_path", "_start", "_values", "_written")

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self._file: File | None = None
        self._start = 0  # entries that are in the file alone
        self._written = 0  # entries that are in the file
        self._keys = array(self.CODES[0])
        self._values = array(self.CODES[1])
        self._block: _Block | None = None

    def load(self) -> None:
        """Read the newest entries of the file; a missing file has none."""
        try:
            size = self._disk.file_size(self._path)
        except FileNotFoundError:
            return
        if size % self.ENTRY.size:
            raise CorruptIndex(
                f"{self._path.name}: size of {size} bytes is not a multiple of the entry size"
            )
        self._written = size // self.ENTRY.size
        self._start = max(0, self._written - WARM_BYTES // self.ENTRY.size)
        self._keys, self._values = self._read(self._start, self._written)

    def __len__(self) -> int:
        return self._start + len(self._keys)

    @property
    def size_bytes(self) -> int:
        return len(self) * self.ENTRY.size

    @property
    def last(self) -> tuple[int, int] | None:
        return (self._keys[-1], self._values[-1]) if self._keys else None

    def append(self, key: int, value: int) -> None:
        assert not self._keys or key > self._keys[-1], f"{self._path.name}: {key} does not rise"
        self._keys.append(key)
        self._values.append(value)
        if len(self._keys) * self.ENTRY.size >= 2 * WARM_BYTES:
            try:
                self.write()
            except OutOfResources:
                return  # its batch is in the log: the next entry tries it again
            keep = WARM_BYTES // self.ENTRY.size
            self._start += len(self._keys) - keep
            self._keys = self._keys[-keep:]
            self._values = self._values[-keep:]

    def floor(self, key: int) -> tuple[int, int] | None:
        """The last entry whose key is not above `key`."""
        keys = self._keys
        if self._start and key < keys[0]:
            return self._cold_floor(key)
        at = bisect_right(keys, key) - 1
        return (keys[at], self._values[at]) if at >= 0 else None

    def pairs(self) -> list[tuple[int, int]]:
        """Every entry, for tools and tests."""
        cold_keys, cold_values = self._read(0, self._start)
        return [
            *zip(cold_keys, cold_values, strict=True),
            *zip(self._keys, self._values, strict=True),
        ]

    def truncate(self, count: int) -> None:
        """Keep only the first `count` entries."""
        if count >= len(self):
            return
        self._block = None
        if count < self._written:
            self._open_file().truncate(count * self.ENTRY.size)
            self._written = count
        if count < self._start:
            self._start = max(0, count - WARM_BYTES // self.ENTRY.size)
            self._keys, self._values = self._read(self._start, count)
        else:
            del self._keys[count - self._start :]
            del self._values[count - self._start :]

    def write(self) -> None:
        """Put what the file lacks into it; after this it is the index, but for a sync."""
        first = self._written - self._start
        if first == len(self._keys):
            return
        pending = zip(self._keys[first:], self._values[first:], strict=True)
        content = b"".join(self.ENTRY.pack(key, value) for key, value in pending)
        self._open_file().append([content])
        self._written = len(self)

    def create(self) -> None:
        """Have a file, if only an empty one: a missing index is one to rebuild."""
        self._open_file()

    def sync(self) -> None:
        self._open_file().sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_file(self) -> File:
        if self._file is None:
            self._file = self._disk.open_append(self._path)
        return self._file

    def _read(self, start: int, end: int) -> tuple[array[int], array[int]]:
        """Entries of the file; one that does not rise shows the file is not what we wrote."""
        keys, values = array(self.CODES[0]), array(self.CODES[1])
        if start == end:
            return keys, values
        width = self.ENTRY.size
        content = self._open_file().pread((end - start) * width, start * width)
        last = -1
        for key, value in self.ENTRY.iter_unpack(content):
            if key <= last or value < 0:
                raise CorruptIndex(f"{self._path.name}: invalid entry ({key}, {value})")
            last = key
            keys.append(key)
            values.append(value)
        return keys, values

    def _cold_floor(self, key: int) -> tuple[int, int] | None:
        """The same among entries that are in the file alone."""
        entry, content = self.ENTRY, self._cold_block(key)
        position = bisect_right(
            range(len(content) // entry.size),
            key,
            key=lambda position: entry.unpack_from(content, position * entry.size)[0],
        )
        if position:
            pair: tuple[int, int] = entry.unpack_from(content, (position - 1) * entry.size)
            if min(pair) < 0:
                raise CorruptIndex(f"{self._path.name}: invalid entry {pair}")
            return pair
        return None

    def _cold_block(self, key: int) -> bytes:
        """The block of the file that holds the last entry not above `key`."""
        block = self._block
        if block is not None and block.first_key <= key < block.next_key:
            return block.content
        per_block, width = WARM_BYTES // self.ENTRY.size, self.ENTRY.size
        low, high = 0, -(-self._start // per_block)  # blocks; the answer is in [low, high)
        while high - low > 1:
            middle = (low + high) // 2
            if self._key_at(middle * per_block) <= key:
                low = middle
            else:
                high = middle
        first = low * per_block
        count = min(per_block, self._start - first)
        content = self._open_file().pread(count * width, first * width)
        first_key: int = self.ENTRY.unpack_from(content)[0]
        self._block = _Block(first_key, self._key_at(first + count), content)
        return content

    def _key_at(self, entry: int) -> int:
        if entry >= self._start:
            return int(self._keys[0])
        width = self.ENTRY.size
        key: int = self.ENTRY.unpack(self._open_file().pread(width, entry * width))[0]
        return key


class OffsetIndex(SparseIndex):
    """(relative offset, position)."""

    ENTRY = Struct(">ii")
    CODES = ("i", "i")

    __slots__ = ()

    def truncate_from(self, relative_offset: int) -> None:
        """Drop entries at or above an offset."""
        pairs = self.pairs()
        self.truncate(sum(offset < relative_offset for offset, _ in pairs))


class TimeIndex(SparseIndex):
    """(timestamp, relative offset)."""

    ENTRY = Struct(">qi")
    CODES = ("q", "i")

    __slots__ = ()

    def append_if_larger(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry if the largest timestamp has risen since the last one."""
        last = self.last
        if timestamp >= 0 and (last is None or timestamp > last[0]):
            self.append(timestamp, relative_offset)

    def truncate_from(self, relative_offset: int) -> None:
        """Drop entries whose batch is at or above an offset."""
        pairs = self.pairs()
        self.truncate(sum(offset < relative_offset for _, offset in pairs))
