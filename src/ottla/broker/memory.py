"""The memory of the process, and the share of each part that clients can make grow.

Owns: which files tell the memory limit (cgroup v2, cgroup v1, /proc/meminfo), and the shares. Each
part is handed its limit in bytes and refuses what exceeds it. The rest is for the broker itself,
for copies in flight, and for the system's page cache. Never measures what is in use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla.config.broker import BrokerConfig

UNKNOWN_BYTES: Final = 2 << 30
"""Assumed if the system does not tell."""
MIB: Final = 1 << 20
REQUESTS_AT_ONCE: Final = 8
"""Requests of the largest size; more of them would only wait in memory."""
GIB: Final = 1 << 30
_ROOT: Final = Path("/")
_MEM_TOTAL: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


class MemoryShares(NamedTuple):
    """In bytes."""

    requests: int
    """Requests being received or handled: `queued.max.request.bytes`."""
    replies: int
    """Replies that clients have not read yet."""
    groups: int
    """Members of groups, with their metadata."""
    fetch_sessions: int
    transactional_ids: int
    offsets: int
    """Committed offsets of groups, and those pending in transactions."""
    producer_ids: int
    """Producer ids that partitions remember."""


def memory_shares(config: BrokerConfig, machine_bytes: int) -> MemoryShares:
    """The share of requests always holds at least one of the largest allowed size."""
    total = config.memory_limit_bytes if config.memory_limit_bytes > 0 else machine_bytes
    requests = config.queued_max_request_bytes
    if requests < 0:
        largest = config.socket_request_max_bytes
        requests = max(min(total // 4, REQUESTS_AT_ONCE * largest), largest)
    return MemoryShares(
        requests=requests,
        replies=min(max(total // 8, 32 * MIB), GIB),
        groups=min(max(total // 8, 32 * MIB), GIB // 2),
        fetch_sessions=max(total // 16, 16 * MIB),
        transactional_ids=max(total // 16, 16 * MIB),
        offsets=max(total // 16, 16 * MIB),
        producer_ids=max(total // 16, 16 * MIB),
    )


def memory_bytes(root: Path = _ROOT) -> int:
    """The smallest limit found; `root` is the directory that contains /proc and /sys."""
    return min(_limits(root), default=UNKNOWN_BYTES)


def _limits(root: Path) -> Iterator[int]:
    total = _MEM_TOTAL.search(_text(root / "proc/meminfo"))
    if total is not None:
        yield int(total[1]) * 1024
    elif root == _ROOT:
        with suppress(ValueError, OSError):  # a system without these names
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if number == "0" and not controllers:
            for name in ("memory.max", "memory.high"):
                yield from _limits_of_group(root / "sys/fs/cgroup", path, name)
        elif "memory" in controllers.split(","):
            yield from _limits_of_group(
                root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes"
            )


def _limits_of_group(base: Path, path: str, name: str) -> Iterator[int]:
    """The limits of the control group and of all its parents: the smallest applies.

    Inside a container the group's own path may be invisible; the limit is at the root then.
    """
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    for count in range(len(parts), -1, -1):
        text = _text(base.joinpath(*parts[:count], name)).strip()
        if text.isdigit() and int(text) > 0:  # "max": no limit
            yield int(text)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
