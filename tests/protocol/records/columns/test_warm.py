"""After warming up nothing is left to compile."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.protocol.records.columns import read_kernels, write_kernels
from ottla.protocol.records.columns.decode import TYPES, decode_batches
from ottla.protocol.records.columns.encode import encode_batches
from ottla.protocol.records.columns.partition import partition_column
from ottla.protocol.records.columns.validate import validate_records
from ottla.protocol.records.columns.warm import warm_up_all
from ottla.protocol.records.header import HEADER_SIZE, read_header


def compiled() -> dict[str, int]:
    """How many forms each kernel was compiled in."""
    kernels: dict[str, Any] = {**vars(read_kernels), **vars(write_kernels)}
    return {
        name: len(kernel.signatures)
        for name, kernel in kernels.items()
        if hasattr(kernel, "signatures")
    }


def test_no_call_compiles_a_kernel_once_more() -> None:
    warm_up_all()
    before = compiled()
    assert all(before[name] for name in ("scan", "write", "check", "hash_keys"))
    keys = pa.chunked_array([[b"a", None], [b"c"]])
    values = pa.array(["x", "y", None], pa.large_string())
    batches = [
        *encode_batches(keys, values, partitions=partition_column(keys, 3, unkeyed=1)),
        *encode_batches(keys, values.cast(pa.binary_view()), timestamps=pa.array([1, 2, None])),
        *encode_batches([b"a", None], [None, b"v"]),
        *encode_batches(None, [b"v"] * 3, headers=[(), (("h", None),), ()]),
        *encode_batches(None, [b"v"] * 300, max_batch_bytes=1000),
    ]
    for batch in batches:
        for data in (batch.data, bytes(batch.data), bytearray(batch.data)):
            decode_batches(data, want=tuple(TYPES))
            decode_batches(data, want=("offset",), start_offset=1)
            section = memoryview(data).toreadonly()[HEADER_SIZE:]
            validate_records(section, read_header(data), dense=True)
    assert compiled() == before
