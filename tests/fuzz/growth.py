"""What a process holds, before and after an attack: nothing of it may grow with the attempts."""

from __future__ import annotations

import asyncio
import gc
import resource
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc/self")
RESIDENT_MAX_BYTES: Final = 24 << 20
"""What the allocators may keep; of 70,000 attempts that is 360 bytes each. OpenSSL's own memory is
in no count of Python's."""


class Held(NamedTuple):
    """What can be left behind."""

    python_bytes: int
    resident_bytes: int
    descriptors: int
    threads: int
    tasks: int


@contextmanager
def no_growth(most_bytes: int) -> Iterator[None]:
    """Fail if the block leaves more behind than it found: objects, memory, descriptors, threads or
    tasks. What is filled once, such as caches, is filled before."""
    tracemalloc.start()
    try:
        before = _held()
        yield
        after = _held()
    finally:
        tracemalloc.stop()
    grown = after.python_bytes - before.python_bytes
    assert grown < most_bytes, f"{grown} bytes of objects stayed"
    resident = after.resident_bytes - before.resident_bytes
    assert resident < RESIDENT_MAX_BYTES, f"{resident} more bytes are resident"
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    assert after.tasks == before.tasks


def _held() -> Held:
    gc.collect()
    objects, _ = tracemalloc.get_traced_memory()
    pages = int((PROC / "statm").read_text().split()[1])
    descriptors = sum(1 for _ in (PROC / "fd").iterdir())
    return Held(
        objects,
        pages * resource.getpagesize(),
        descriptors,
        threading.active_count(),
        _tasks(),
    )


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0  # no loop is running
