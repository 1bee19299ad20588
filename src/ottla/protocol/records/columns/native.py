"""How kernels are compiled and kept, and the one form in which they take bytes.

Compiled code is kept beside the file it was written in and renewed when that file changes, but not
when a function it calls in another file does. So the kernels live in two files that do not import
from each other, `reading` and `writing`, and everything native that one of them needs is in it.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numba
import numpy as np

from ottla.protocol.records.compression import Bytes

F = TypeVar("F")


def native(function: F) -> F:
    """Compiled once per machine and kept on disk; runs without the interpreter's lock."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # nowhere to keep it: compile for this process alone
        return cast(F, numba.njit(nogil=True)(function))


def inlined(function: F) -> F:
    """A part of the kernels of its file: calling it once per field would be most of the cost."""
    return cast(F, numba.njit(nogil=True, forceinline=True)(function))


def as_array(buffer: Bytes) -> Any:
    """The bytes as the kernels take them: read-only, so that each is compiled only once."""
    return np.frombuffer(memoryview(buffer).toreadonly(), dtype=np.uint8)
