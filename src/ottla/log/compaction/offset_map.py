"""The newest offset of each key, in a fixed amount of memory.

Owns: an open-addressed table of 24-byte entries, a 16-byte digest of the key and its offset.
Never: keeps keys, grows, or forgets an entry.

Compaction needs one entry per distinct key of the dirty part of a log. A Python dict would take
six times the room, so the table is two flat buffers; how full it may get is the caller's bound on
memory. Two keys with one digest would lose a record: the digest is a cryptographic one.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import Final

from ottla.model.ids import Offset

ENTRY_BYTES: Final = 24
DIGEST_BYTES: Final = 16
ABSENT: Final = -1


class OffsetMap:
    """Digest of a key -> the largest offset it was put with."""

    def __init__(self, slots: int, load_factor: float = 0.9) -> None:
        assert slots > 0 and 0 < load_factor <= 1
        self._slots = slots
        self._digests = bytearray(slots * DIGEST_BYTES)
        # One more than the offset, so that a zero means an empty slot.
        self._ends = array("q", bytes(8 * slots))
        self.capacity = min(slots - 1, int(slots * load_factor))
        self.size = 0
        self.latest_offset: Offset = -1

    @classmethod
    def fitting(cls, keys: int, *, buffer_bytes: int, load_factor: float) -> OffsetMap:
        """Room for `keys` keys where the buffer allows it, else as many as fit into the buffer."""
        slots = int(keys / load_factor) + 2
        return cls(max(2, min(slots, buffer_bytes // ENTRY_BYTES)), load_factor)

    @property
    def full(self) -> bool:
        return self.size >= self.capacity

    def put(self, key: bytes | memoryview, offset: Offset) -> None:
        """Remember the offset; offsets are put in rising order, so the last one is the largest."""
        digest = blake2b(key, digest_size=DIGEST_BYTES).digest()
        slot = self._find(digest)
        if not self._ends[slot]:
            assert not self.full, "the map is full: the caller must stop before"
            self._digests[slot * DIGEST_BYTES : (slot + 1) * DIGEST_BYTES] = digest
            self.size += 1
        self._ends[slot] = offset + 1

    def get(self, key: bytes | memoryview) -> Offset:
        return self._ends[self._find(blake2b(key, digest_size=DIGEST_BYTES).digest())] - 1

    def _find(self, digest: bytes) -> int:
        """The slot of the digest, or the empty one where it would go."""
        slot = int.from_bytes(digest[:8], "little") % self._slots
        while self._ends[slot]:
            at = slot * DIGEST_BYTES
            if self._digests[at : at + DIGEST_BYTES] == digest:
                return slot
            slot = slot + 1 if slot + 1 < self._slots else 0
        return slot
