"""The one way in which record bytes are found to be bad.

A module of its own because everything in this package raises it and nothing else is shared by all.
What follows from it (a refusal, a truncated log, a partition taken offline) is for callers to say.
"""

from __future__ import annotations


class CorruptBatch(Exception):
    """Bytes that are not a record batch: why, and at which byte of what was being read."""

    def __init__(self, reason: str, position: int = 0) -> None:
        super().__init__(f"{reason} (at byte {position})")
        self.reason = reason
        self.position = position
