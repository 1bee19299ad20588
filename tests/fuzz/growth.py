"""What a process holds, before and after an attack: nothing of it may grow with the attempts."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc/self")
NATIVE_MAX_BYTES: Final = 1 << 20
"""Of 70,000 attempts that is 15 bytes each. OpenSSL's own memory is in no count of Python's; what
is resident says little, because allocators keep what was freed."""


class Held(NamedTuple):
    """What can be left behind."""

    python_bytes: int
    native_bytes: int
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
    native = after.native_bytes - before.native_bytes
    assert native < NATIVE_MAX_BYTES, f"{native} bytes of malloc stayed"
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    assert after.tasks == before.tasks


def _held() -> Held:
    gc.collect()
    objects, _ = tracemalloc.get_traced_memory()
    descriptors = sum(1 for _ in (PROC / "fd").iterdir())
    return Held(
        objects,
        _native_bytes(),
        descriptors,
        threading.active_count(),
        _tasks(),
    )


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of the GNU C library."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    )  # fmt: skip


def _native_bytes() -> int:
    """What malloc has given out and not got back; 0 with a C library that does not tell."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    mallinfo.restype = _MallocInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0  # no loop is running
