"""What all kernels rest on: bytes taken as they are, and copied as asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ottla.protocol.records.columns.native import address, as_array, copy, native


@native
def copied(target: int, source: int, size: int) -> None:
    copy(target, source, size)


@native
def behind(array: np.ndarray[Any, Any], size: int) -> int:
    return address(array) + size


def test_an_address_is_a_whole_number_and_so_is_what_is_added_to_it() -> None:
    array = np.zeros(3, np.uint8)
    found = behind(array, 2)
    assert isinstance(found, int), "a fraction would be slow, and wrong beyond 53 bits"
    assert found == array.ctypes.data + 2


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100])
def test_a_copy_touches_its_bytes_and_no_others(size: int) -> None:
    source = as_array(bytes(range(1, 128)))
    target = np.zeros(120, np.uint8)
    copied(target.ctypes.data + 5, source.ctypes.data + 20, size)
    assert target.tobytes() == bytes(5) + bytes(range(21, 21 + size)) + bytes(115 - size)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_is_one_kind_of_array(kind: type) -> None:
    array = as_array(kind(b"abc"))
    assert array.tobytes() == b"abc"
    assert not array.flags.writeable


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_kernel_reaches_outside_its_arrays(tmp_path: Path) -> None:
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    tests = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent)]
    done = subprocess.run(tests, env=checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
