"""Where arrays come from.

Memory fresh from the system is dearer than everything that is done to a record, because of its page
faults: half a millisecond a megabyte, against a quarter for decoding it. So large arrays come from
where memory can be had that was used before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

Room: TypeAlias = Callable[[str, int, Any], Any]
"""Gives an array: what it is for, how many elements, of which kind. Its content is anything."""

MAX_KEPT_BYTES: Final = 16 * 1024 * 1024


def fresh(_: str, count: int, kind: Any) -> Any:
    """An array of its own: for few rows, which the allocator has at hand."""
    return np.empty(count, kind)


def pooled(_: str, count: int, kind: Any) -> Any:
    """Memory of Arrow's own pool, which keeps what tables that are gone have used."""
    import pyarrow as pa

    kind = np.dtype(kind)
    return np.frombuffer(pa.allocate_buffer(count * kind.itemsize), kind)


class Scratch(threading.local):
    """Arrays that the next call of the same thread uses again, for what does not outlive a call."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def room(self, name: str, count: int, kind: Any) -> Any:
        known = self._arrays.get(name)
        if known is None or known.size < count:
            known = np.empty(count, kind)
            if known.nbytes <= MAX_KEPT_BYTES:
                self._arrays[name] = known
        return known[:count]
