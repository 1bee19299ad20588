"""Loads every kernel, or compiles it: `python -m ottla.protocol.records.columns.warm`.

For installations and services that should not compile at the first record. A broker needs only
`validate.warm_up`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ottla.protocol.records.columns import validate
from ottla.protocol.records.columns.decode import TYPES, decode_batches
from ottla.protocol.records.columns.encode import encode_batches
from ottla.protocol.records.columns.partition import partition_column


def warm_up_all() -> None:
    """Takes seconds once per machine, a few tenths of a second after that."""
    validate.warm_up()
    bytes_of_one = _column_of_one(b"v")
    headers, partitions = [(("k", b"v"),)], partition_column(bytes_of_one, 1)
    encode_batches([b"k"], [b"v"])
    (batch,) = encode_batches(bytes_of_one, bytes_of_one, headers, now_ms=0, partitions=partitions)
    decode_batches(batch.data, want=tuple(TYPES))


def _column_of_one(value: bytes) -> pa.Array:
    """Made of its bytes: Arrow would import pandas to look at a list."""
    ends = np.array([0, len(value)], np.int32)
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(value)])


if __name__ == "__main__":
    warm_up_all()
