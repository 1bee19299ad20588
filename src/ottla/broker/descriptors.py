"""File descriptors of the process, and the share of each part that takes them.

Owns: the shares. Each part is handed its share and keeps to it, so that connections never take the
descriptors that logs need. Never opens or counts one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.net.limits import UNLIMITED, DescriptorLimits
from ottla.replica.flush_loop import FILES_AT_ONCE

LOG_FILES_MAX: Final = 2_000
"""Log files kept open."""
OTHER_MAX: Final = 500
"""For all that is neither a log file nor a connection."""
RESERVE_MAX: Final = 16
"""Of `other`, kept for logs that are made, truncated or deleted when nothing else is free."""


class DescriptorShares(NamedTuple):
    """In descriptors."""

    log_files: int
    """Log files kept open: half of all, while that is less than `LOG_FILES_MAX`."""
    flushes: int
    """Files that flushes hold open at a time: an eighth."""
    other: int
    """A sixteenth: the metadata store, connections to other brokers and from them beyond the bound,
    metrics, files open for a moment, and files that are closed but still being sent."""
    waiting: int
    """New connections that wait to be admitted: a sixteenth."""
    connections: int
    """The rest: at least a quarter."""

    @property
    def reserve(self) -> int:
        """Kept free by holding them: what the disk falls back on."""
        return min(RESERVE_MAX, self.other // 2)

    @property
    def net(self) -> DescriptorLimits:
        """What the network layer keeps to."""
        return DescriptorLimits(self.connections, self.waiting, self.other // 2)


def descriptor_shares(limit: int) -> DescriptorShares:
    """Of a process that may open `limit` descriptors; below 0: as many as it likes."""
    if limit < 0:
        limit = UNLIMITED
    log_files = min(LOG_FILES_MAX, limit // 2)
    flushes = min(FILES_AT_ONCE, limit // 8)
    other = min(OTHER_MAX, limit // 16)
    waiting = limit // 16
    return DescriptorShares(
        log_files, flushes, other, waiting, limit - log_files - flushes - other - waiting
    )


UNLIMITED_SHARES: Final = descriptor_shares(-1)
