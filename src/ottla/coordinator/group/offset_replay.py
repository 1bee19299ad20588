"""Replays plain offset commits in bulk.

A new coordinator may have a million of them to load, so this one loop reads records, keys and
values together, and decodes no value: a group only needs to know that a partition has an offset and
the position of its record (benchmarks/loading.py). It stops at the first record that is something
else, or damaged, and leaves it to `records`.
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
OFFSET_BYTES: Final = 120
"""Memory counted for an offset besides its value."""
VALUE_OVERHEAD: Final = PLAIN.size + 8
"""The size of a value without its metadata."""

Packed: TypeAlias = "dict[int, bytes]"
"""By partition: the offset of the record (eight bytes), then the record's value."""
Open: TypeAlias = "Callable[[str, str], Packed]"


class ReplayedOffsets(NamedTuple):
    """The position behind the last replayed record, and the number of replayed records."""

    position: int
    records: int


class BulkOffsetReplay:
    """Caches the offsets of each group and topic, by the record key without the partition."""

    def __init__(self, open: Open, grow: Callable[[int], None]) -> None:
        self._open = open
        self._grow = grow
        self._cache: dict[bytes, Packed] = {}

    def forget(self) -> None:
        """Clear the cache: another record was replayed and may have replaced the offsets."""
        self._cache.clear()

    def take(self, data: bytes, position: int, most: int, base_offset: int) -> ReplayedOffsets:
        """Replay plain commits from `position` on, in the uncompressed records of a batch."""
        cached, pack_position, partition = self._cache.get, POSITION.pack, PARTITION.unpack_from
        count, start, grown_bytes = 0, position, 0
        try:
            while count < most:
                size, position = data[position], position + 1
                if size > 0x7F:
                    size, position = _more(size, data[position]), position + 1
                end = position + (size >> 1)
                position += 1  # attributes
                while data[position] > 0x7F:  # the time, which the value has as well
                    position += 1
                delta, position = data[position + 1], position + 2
                if delta > 0x7F:
                    delta, position = _more(delta, data[position]), position + 1
                size, position = data[position], position + 1
                if size > 0x7F:
                    size, position = _more(size, data[position]), position + 1
                key_at, key_end = position, position + (size >> 1)
                size, position = data[key_end], key_end + 1
                if size > 0x7F:
                    size, position = _more(size, data[position]), position + 1
                value_end = position + (size >> 1)
                if (
                    data[position + 1] != WRITTEN
                    or data[position]
                    or value_end - position
                    != VALUE_OVERHEAD + (data[position + 14] << 8 | data[position + 15])
                    or data[value_end]  # headers, of which there are none
                    or value_end + 1 != end
                ):
                    break
                packed = cached(data[key_at : key_end - 4])
                if packed is None:
                    packed = self._add_to_cache(data[key_at:key_end])
                place = partition(data, key_end - 4)[0]
                value = pack_position(base_offset + (delta >> 1)) + data[position:value_end]
                before = packed.get(place)
                grown_bytes += len(value)
                grown_bytes += OFFSET_BYTES if before is None else -len(before)
                packed[place] = value
                start = position = end
                count += 1
        except (IndexError, ValueError):
            pass  # another kind of record; `records` decodes it or reports the damage
        self._grow(grown_bytes)
        return ReplayedOffsets(start, count)

    def _add_to_cache(self, key: bytes) -> Packed:
        """The offsets of the key's group and topic; ValueError if it is no offset commit key."""
        group_end = 4 + (key[2] << 8 | key[3])
        topic_end = group_end + 2 + (key[group_end] << 8 | key[group_end + 1])
        if key[:2] != KEY_BEGINS or len(key) != topic_end + 4:
            raise ValueError("not the key of an offset commit")
        group, topic = key[4:group_end].decode(), key[group_end + 2 : topic_end].decode()
        packed = self._cache[key[:-4]] = self._open(intern(group), intern(topic))
        return packed


def _more(low: int, high: int) -> int:
    """A varint of two bytes; ValueError for a longer one, which is left to `records`."""
    if high > 0x7F:
        raise ValueError("varint of more than two bytes")
    return low & 0x7F | high << 7
