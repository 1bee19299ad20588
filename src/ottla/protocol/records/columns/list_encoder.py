"""Python lists to the records of one batch, with as little around the kernel as can be.

Owns the quick way that `encode` takes for what `send()` collected: a few hundred rows without
headers, which are one batch. Everything else goes through `rows`. Hot: benchmarks/columns.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ottla.protocol.records.columns.arrays import shelved
from ottla.protocol.records.columns.rows import NO_BYTES, timestamps_of
from ottla.protocol.records.columns.write_kernels import Cells, write_cells
from ottla.protocol.records.header import HEADER_SIZE

MOST_BESIDE_FIELDS: Final = 36  # bytes of a record: attributes, and six numbers at their longest
NO_CELLS: Final = Cells(np.empty(0, np.int64), NO_BYTES)


def write_lists(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    timestamps: Any,
    now_ms: int,
    limit: int,
) -> tuple[Any, int, int] | None:
    """The records behind room for a header, their first timestamp and their largest.

    None where they take more than the limit. There must be at least one.
    """
    key_cells = NO_CELLS if keys is None else _cells(keys)
    value_cells = _cells(values)
    fields = key_cells.data.size + value_cells.data.size
    if fields > limit:
        return None
    times = timestamps_of(timestamps, len(values), now_ms)
    out = shelved("", HEADER_SIZE + MOST_BESIDE_FIELDS * len(values) + fields, np.uint8)
    end, newest = write_cells(key_cells, value_cells, times, out)
    return None if end > limit else (out[:end], int(times[0]), newest)


def _cells(values: Sequence[bytes | None]) -> Cells:
    lengths: Any = map(len, values)  # type: ignore[arg-type]
    try:
        data = b"".join(values)  # type: ignore[arg-type]
    except TypeError:  # some are None: looking for one first takes twice as long as joining
        lengths = (-1 if value is None else len(value) for value in values)
        data = b"".join(filter(None, values))
    return Cells(np.fromiter(lengths, np.int64, len(values)), np.frombuffer(data, np.uint8))
