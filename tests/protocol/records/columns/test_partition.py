"""Keys go where Java's producer would send them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.partitioner import murmur2
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.columns.partition import murmur2_column, partition_column

JAVA = {  # as Kafka's own tests have them
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.spec("PRD-14")
def test_hashes_are_those_of_java() -> None:
    assert murmur2_column(list(JAVA)).tolist() == list(JAVA.values())
    assert murmur2_column(pa.array(list(JAVA))).tolist() == list(JAVA.values())


@pytest.mark.spec("PRD-14")
@given(st.lists(st.binary(max_size=40)), st.integers(1, 300))
def test_another_implementation_chooses_the_same_partitions(
    keys: list[bytes], partitions: int
) -> None:
    expected = [(murmur2(key) & 0x7FFF_FFFF) % partitions for key in keys]
    assert partition_column(keys, partitions).tolist() == expected


@pytest.mark.spec("PRD-15")
def test_rows_without_a_key_go_where_the_producer_says() -> None:
    keys = [b"a", None, b"b", None]
    chosen = partition_column(keys, 12, unkeyed=7)
    assert chosen.dtype == np.int32
    assert chosen[[1, 3]].tolist() == [7, 7]
    assert chosen[[0, 2]].tolist() == partition_column([b"a", b"b"], 12).tolist()
    assert partition_column([None, None], 12).tolist() == [-1, -1]
    assert partition_column(pa.nulls(2), 12, unkeyed=3).tolist() == [3, 3]
