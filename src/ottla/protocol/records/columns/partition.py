"""The partition of each row of a column of keys, as Java's producer computes it.

Owns murmur2 over a column, and its mapping to partitions. The caller chooses the partition of rows
without a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from ottla.protocol.records.columns.native import Int32s
from ottla.protocol.records.columns.rows import ArrowValues, column_of, place_of
from ottla.protocol.records.columns.write_kernels import hash_keys

NO_KEY: Final = -1
Keys: TypeAlias = "Sequence[bytes | None] | ArrowValues"


def murmur2_column(keys: Keys) -> Int32s:
    """The hash of each key as an int32 array; 0 for a null."""
    hashes = np.empty(len(keys), np.int32)
    column = column_of(keys, "key")
    hash_keys(place_of(column), hashes)
    return hashes


def partition_column(keys: Keys, partitions: int, *, unkeyed: int = NO_KEY) -> Int32s:
    """The partition of each key as an int32 array; `unkeyed` for a null."""
    column = column_of(keys, "key")
    if not column.ends.size:
        return np.full(len(keys), unkeyed, np.int32)
    hashes = np.empty(len(keys), np.int32)
    hash_keys(place_of(column), hashes)
    numbers = (hashes & np.int32(0x7FFF_FFFF)) % np.int32(partitions)
    if column.nulls.size:
        numbers[column.nulls] = unkeyed
    return numbers
