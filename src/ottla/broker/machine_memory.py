"""How much memory this process may use: the machine's, or less if a control group limits it.

Owns: which files are read (cgroup v2, cgroup v1, /proc/meminfo). Never: decides what the memory is
used for (`broker/memory_shares.py` does).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

UNKNOWN_BYTES: Final = 2 << 30
"""Assumed if the system does not tell."""
_ROOT: Final = Path("/")
_MEM_TOTAL: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


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
