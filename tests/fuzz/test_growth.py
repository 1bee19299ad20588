from __future__ import annotations

import asyncio
import ctypes
import os
import threading

import pytest

from tests.fuzz.growth import NATIVE_MAX_BYTES, OTHERS_MAX, no_growth

OBJECTS_MAX_BYTES = 100_000


def test_objects_that_stay_are_noticed() -> None:
    kept: list[bytearray] = []
    with pytest.raises(AssertionError, match="bytes of objects stayed"), no_growth(1_000_000):
        kept.append(bytearray(2_000_000))
    with no_growth(1_000_000):
        kept.append(bytearray(500_000))


def test_memory_that_python_does_not_count_is_noticed() -> None:
    if not hasattr(libc := ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("the C library does not tell what malloc has given out")
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    for size in (200, 2 * NATIVE_MAX_BYTES):  # of the heap, and by a mapping
        count = 2 * NATIVE_MAX_BYTES // size
        held = (ctypes.c_void_p * count)()
        with pytest.raises(AssertionError, match="malloc stayed"), no_growth(OBJECTS_MAX_BYTES):
            for number in range(count):
                held[number] = libc.malloc(size)
        for address in held:
            libc.free(address)


def test_descriptors_that_stay_open_are_noticed() -> None:
    opened: list[int] = []
    try:
        with pytest.raises(AssertionError), no_growth(OBJECTS_MAX_BYTES):
            opened += [os.open(os.devnull, os.O_RDONLY) for _ in range(2 * OTHERS_MAX)]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_threads_that_do_not_end_are_noticed() -> None:
    end = threading.Event()
    waiting = [threading.Thread(target=end.wait) for _ in range(2 * OTHERS_MAX)]
    try:
        with pytest.raises(AssertionError), no_growth(OBJECTS_MAX_BYTES):
            for thread in waiting:
                thread.start()
    finally:
        end.set()
        for thread in waiting:
            thread.join()


async def test_a_task_that_does_not_end_is_noticed() -> None:
    started: list[asyncio.Task[None]] = []

    with pytest.raises(AssertionError), no_growth(OBJECTS_MAX_BYTES):
        started.append(asyncio.create_task(asyncio.sleep(9)))
    started[0].cancel()
