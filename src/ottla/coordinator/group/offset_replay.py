"""Plain offset commits, replayed as many at a time as there are.

A broker that begins to lead may have a million of them to read first, so this one loop reads
records, keys and values together, and decodes no value: what a group needs is that a partition has
one, and where it stands (benchmarks/loading.py). It stops at the first record that is anything
else, or damaged, for `records` to read.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from sys import intern
from typing import Final, NamedTuple, TypeAlias

from ottla.coordinator.group.records import PLAIN, WRITTEN

POSITION: Final = Struct(">q")
PARTITION: Final = Struct(">i")
KEY_BEGINS: Final = b"\0\1"
VALUE_OVERHEAD: Final = PLAIN.size + 8
"""A value without its metadata."""

Packed: TypeAlias = "dict[int, bytes]"
"""By partition: where the record stands, eight bytes, and its value as it stands there."""
Open: TypeAlias = "Callable[[str, str], Packed]"


class ReplayedOffsets(NamedTuple):
    """Up to where records were read, and how many."""

    at: int
    records: int


class BulkOffsetReplay:
    """Knows where commits of each group and topic go, by all of the key but the partition."""

    def __init__(self, open: Open) -> None:
        self._open = open
        self._known: dict[bytes, Packed] = {}

    def forget(self) -> None:
        """Something else was replayed: it may have changed where they go."""
        self._known.clear()

    def take(self, data: bytes, at: int, most: int, base_offset: int) -> ReplayedOffsets:
        """Replay plain commits from `at` on, in the inflated records of a batch."""
        known, position, partition = self._known.get, POSITION.pack, PARTITION.unpack_from
        count, start = 0, at
        try:
            while count < most:
                size, at = data[at], at + 1
                if size > 0x7F:
                    size, at = _more(size, data[at]), at + 1
                end = at + (size >> 1)
                at += 1  # attributes
                while data[at] > 0x7F:  # the time, which the value has as well
                    at += 1
                delta, at = data[at + 1], at + 2
                if delta > 0x7F:
                    delta, at = _more(delta, data[at]), at + 1
                size, at = data[at], at + 1
                if size > 0x7F:
                    size, at = _more(size, data[at]), at + 1
                key_at, key_end = at, at + (size >> 1)
                size, at = data[key_end], key_end + 1
                if size > 0x7F:
                    size, at = _more(size, data[at]), at + 1
                value_end = at + (size >> 1)
                if (
                    data[at + 1] != WRITTEN
                    or data[at]
                    or value_end - at != VALUE_OVERHEAD + (data[at + 14] << 8 | data[at + 15])
                    or data[value_end]  # headers, of which there are none
                    or value_end + 1 != end
                ):
                    break
                packed = known(data[key_at : key_end - 4])
                if packed is None:
                    packed = self._learn(data[key_at:key_end])
                place = partition(data, key_end - 4)[0]
                packed[place] = position(base_offset + (delta >> 1)) + data[at:value_end]
                start = at = end
                count += 1
        except (IndexError, ValueError):
            pass  # no such record; whoever reads it next says what it is
        return ReplayedOffsets(start, count)

    def _learn(self, key: bytes) -> Packed:
        """Where commits of this key go; ValueError if it is no key of a commit."""
        group_end = 4 + (key[2] << 8 | key[3])
        topic_end = group_end + 2 + (key[group_end] << 8 | key[group_end + 1])
        if key[:2] != KEY_BEGINS or len(key) != topic_end + 4:
            raise ValueError("another kind of record")
        group, topic = key[4:group_end].decode(), key[group_end + 2 : topic_end].decode()
        packed = self._known[key[:-4]] = self._open(intern(group), intern(topic))
        return packed


def _more(low: int, high: int) -> int:
    """A varint of two bytes; ValueError for a longer one, which is not read here."""
    if high > 0x7F:
        raise ValueError("a larger record")
    return low & 0x7F | high << 7
