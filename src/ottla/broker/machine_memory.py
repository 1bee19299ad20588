"""How much memory this process may use: the machine's, or less where a control group says so.

Owns: which files say it (cgroup v2, cgroup v1, /proc/meminfo). Never: decides what it is used for
(`broker/memory_shares.py` does).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

UNKNOWN_BYTES: Final = 2 << 30
"""Assumed where the system does not say."""
_ROOT: Final = Path("/")
_MEM_TOTAL: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


def memory_bytes(root: Path = _ROOT) -> int:
    """The smallest of the limits there are; `root` is where /proc and /sys stand."""
    return min(_limits(root), default=UNKNOWN_BYTES)


def _limits(root: Path) -> Iterator[int]:
    found = _MEM_TOTAL.search(_text(root / "proc/meminfo"))
    if found is not None:
        yield int(found[1]) * 1024
    elif root == _ROOT:
        with suppress(ValueError, OSError):  # a system without these names
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if number == "0" and not controllers:
            for name in ("memory.max", "memory.high"):
                yield from _on_the_way(root / "sys/fs/cgroup", path, name)
        elif "memory" in controllers.split(","):
            yield from _on_the_way(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")


def _on_the_way(base: Path, path: str, name: str) -> Iterator[int]:
    """The limit of the group and of each one above it: the smallest of them holds.

    A container may not see its own path; what is at the top is its own limit then.
    """
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    for count in range(len(parts), -1, -1):
        text = _text(base.joinpath(*parts[:count], name)).strip()
        if text.isdigit() and int(text) > 0:  # "max": none
            yield int(text)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""
