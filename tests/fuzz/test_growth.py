from __future__ import annotations

import asyncio
import mmap
import os
import threading

import pytest

from tests.fuzz.growth import RESIDENT_MAX_BYTES, no_growth

OBJECTS_MAX_BYTES = 100_000


def test_objects_that_stay_are_noticed() -> None:
    kept: list[bytearray] = []
    with pytest.raises(AssertionError, match="bytes of objects stayed"), no_growth(10_000):
        kept.append(bytearray(20_000))
    with no_growth(10_000):
        kept.append(bytearray(5_000))


def test_memory_that_python_does_not_count_is_noticed() -> None:
    held: list[mmap.mmap] = []
    with pytest.raises(AssertionError, match="resident"), no_growth(OBJECTS_MAX_BYTES):
        held.append(mmap.mmap(-1, 2 * RESIDENT_MAX_BYTES))
        for at in range(0, len(held[0]), mmap.PAGESIZE):
            held[0][at] = 1


def test_a_descriptor_that_stays_open_is_noticed() -> None:
    opened: list[int] = []
    try:
        with pytest.raises(AssertionError), no_growth(OBJECTS_MAX_BYTES):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        os.close(opened[0])


def test_a_thread_that_does_not_end_is_noticed() -> None:
    end = threading.Event()
    waiting = threading.Thread(target=end.wait)
    try:
        with pytest.raises(AssertionError), no_growth(OBJECTS_MAX_BYTES):
            waiting.start()
    finally:
        end.set()
        waiting.join()


async def test_a_task_that_does_not_end_is_noticed() -> None:
    started: list[asyncio.Task[None]] = []

    with pytest.raises(AssertionError), no_growth(OBJECTS_MAX_BYTES):
        started.append(asyncio.create_task(asyncio.sleep(9)))
    started[0].cancel()
