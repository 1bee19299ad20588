"""What happened, as one number: two runs of a seed are the same run when their hashes are.

Owns the hash and, when asked for, the events behind it, so that two runs that differ can be
compared line by line.
"""

from __future__ import annotations

from hashlib import blake2b
from zlib import crc32


class Trace:
    """Every event of a simulation, in order."""

    def __init__(self, *, keep: bool = False, hashed: bool = True) -> None:
        """Neither: nothing is recorded, for runs that nobody compares."""
        self.is_used = keep or hashed
        self._hash = blake2b(digest_size=16)
        self.lines: list[str] | None = [] if keep else None
        self.count = 0

    def note(self, *what: object) -> None:
        if not self.is_used:
            return
        line = " ".join(map(str, what))
        self.count += 1
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self.lines is not None:
            self.lines.append(line)

    def data(self, what: str, content: bytes) -> None:
        if self.is_used:
            self.note(what, len(content), crc32(content))

    def digest(self) -> str:
        return self._hash.hexdigest()
