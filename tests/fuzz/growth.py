"""What a process holds, before and after an attack: nothing of it may grow with the attempts."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Final, NamedTuple

from tests.cluster.process import wait_for

PROC: Final = Path("/proc/self")
NATIVE_MAX_BYTES: Final = 1 << 20
"""Of 70,000 attempts that is 15 bytes each. OpenSSL's own memory is in no count of Python's; what
is resident says little, because allocators keep what was freed."""


BROKER_DATA: Final = f"{gettempdir()}/ottla-"
OTHERS_MAX: Final = 8
"""Descriptors and threads that brokers of other tests, which live in the same process, may add
meanwhile. What an attempt leaves behind, hundreds and thousands of them leave far more often."""
SETTLE_S: Final = 1.0
"""What those brokers hold for a moment is none of ours."""


class Held(NamedTuple):
    """What can be left behind."""

    python_bytes: int
    native_bytes: int
    descriptors: Mapping[str, str]
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
        with suppress(AssertionError):
            wait_for(lambda: not _growth(before, _held(), most_bytes), SETTLE_S)
        growth = _growth(before, _held(), most_bytes)
    finally:
        tracemalloc.stop()
    assert not growth, growth


def _growth(before: Held, after: Held, most_bytes: int) -> str:
    """What has grown beyond its limit; empty if nothing has."""
    objects = after.python_bytes - before.python_bytes
    native = after.native_bytes - before.native_bytes
    opened = [
        target for number, target in after.descriptors.items() if number not in before.descriptors
    ]
    faults = {
        f"{objects} bytes of objects stayed": objects >= most_bytes,
        f"{native} bytes of malloc stayed": native >= NATIVE_MAX_BYTES,
        f"descriptors stayed: {opened}": (
            len(after.descriptors) > len(before.descriptors) + OTHERS_MAX
        ),
        f"{after.threads} threads, {before.threads} before": (
            after.threads > before.threads + OTHERS_MAX
        ),
        f"{after.tasks} tasks, {before.tasks} before": after.tasks != before.tasks,
    }
    return "; ".join(fault for fault, found in faults.items() if found)


def _held() -> Held:
    gc.collect()
    objects, _ = tracemalloc.get_traced_memory()
    return Held(objects, _native_bytes(), _descriptors(), threading.active_count(), _tasks())


def _descriptors() -> dict[str, str]:
    """Every open descriptor and what it leads to, but the data of other tests' brokers."""
    opened = {}
    for entry in (PROC / "fd").iterdir():
        with suppress(FileNotFoundError):  # that of this very directory, or closed meanwhile
            target = str(entry.readlink())
            if not target.startswith(BROKER_DATA):
                opened[entry.name] = target
    return opened


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
