"""What records cost as columns: batches to Arrow, Arrow to batches, keys to partitions, lists.

Prints millions of records a second of one core's CPU time and asserts nothing:

    python benchmarks/columns.py [value bytes]

Run it before and after touching `ottla.protocol.records.columns`.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from time import thread_time
from typing import Any

import pyarrow as pa

from ottla.protocol.records.columns.decode import TYPES, decode_batches
from ottla.protocol.records.columns.encode import encode_batches
from ottla.protocol.records.columns.partition import murmur2_column, partition_column
from ottla.protocol.records.columns.record_lists import decode_records
from ottla.protocol.records.columns.warm import warm_up_all
from ottla.protocol.records.compression import Codec

ROWS = 200_000
NOW_MS = 1_700_000_000_000
ROUNDS = 7


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    warm_up_all()
    values = pa.array([b"%0*d" % (size, row) for row in range(ROWS)])
    keys = pa.array([b"key-%d" % row for row in range(ROWS)])
    encoding(keys, values)
    lists(keys, values)
    decoding(values)


def encoding(keys: Any, values: Any) -> None:
    measure("murmur2", lambda: murmur2_column(keys))
    measure("encode, no key", lambda: encode_batches(None, values, now_ms=NOW_MS))
    measure("encode, keys", lambda: encode_batches(keys, values, now_ms=NOW_MS))
    measure(
        "encode, keyed over 12 partitions",
        lambda: encode_batches(keys, values, now_ms=NOW_MS, partitions=partition_column(keys, 12)),
    )
    for codec in (Codec.LZ4, Codec.ZSTD):
        measure(
            f"encode, {codec.name.lower()}",
            lambda codec=codec: encode_batches(None, values, now_ms=NOW_MS, codec=codec),  # type: ignore[misc]
        )


def lists(keys: Any, values: Any) -> None:
    for rows in (1, 10, 150, 1000):
        some, names = values[:rows].to_pylist(), keys[:rows].to_pylist()
        times = array("q", [NOW_MS] * rows)
        measure(
            f"encode lists of {rows}",
            lambda some=some, times=times: encode_batches(None, some, None, times),  # type: ignore[misc]
            rows,
        )
        measure(
            f"encode lists of {rows}, keys",
            lambda names=names, some=some, times=times: encode_batches(names, some, None, times),  # type: ignore[misc]
            rows,
        )


def decoding(values: Any) -> None:
    for limit in (1 << 20, 16 << 10, 1):
        part = values if limit > 1 else values[: ROWS // 20]
        buffer = batches(part, limit)
        name = {1: "one record", 1 << 20: "1 MB"}.get(limit, "16 KB")
        rows = len(part)
        measure(f"decode, batches of {name}", lambda b=buffer: decode_batches(b), rows)  # type: ignore[misc]
        measure(
            f"decode to lists, batches of {name}",
            lambda b=buffer: decode_records(b),  # type: ignore[misc]
            rows,
        )
    for codec in Codec:
        buffer = batches(values, 1 << 20, codec)
        measure(f"decode, {codec.name.lower()}", lambda b=buffer: decode_batches(b))  # type: ignore[misc]
    buffer = batches(values, 1 << 20)
    measure("decode, offsets alone", lambda: decode_batches(buffer, want=("offset",)))
    measure("decode, every column", lambda: decode_batches(buffer, want=tuple(TYPES)))


def batches(values: Any, limit: int, codec: Codec = Codec.NONE) -> bytes:
    made = encode_batches(None, values, now_ms=NOW_MS, max_batch_bytes=limit, codec=codec)
    return b"".join(batch.data for batch in made)


def measure(name: str, call: Callable[[], object], rows: int = ROWS) -> None:
    """The best of a few rounds."""
    best, repeats = float("inf"), max(1, 2_000 // rows)
    for _ in range(ROUNDS):
        start = thread_time()
        for _ in range(repeats):
            call()
        best = min(best, (thread_time() - start) / repeats)
    print(f"{name:<36} {rows / best / 1e6:8.2f} M/s {best / rows * 1e9:9.1f} ns each")


if __name__ == "__main__":
    main()
