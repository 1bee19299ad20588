"""murmur2 as Java computes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioners import murmur2, partition_of
from ottla.protocol.records.columns.partition import murmur2_column

# Computed with org.apache.kafka.common.utils.Utils.murmur2, as signed numbers.
JAVA = {
    b"21": -973932308,
    b"abc": 479470107,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
}


@pytest.mark.spec("PRD-14")
@pytest.mark.parametrize("key", JAVA)
def test_the_hash_is_javas(key: bytes) -> None:
    assert murmur2(key) == JAVA[key] & 0xFFFF_FFFF


@given(st.lists(st.binary(max_size=40), min_size=1))
def test_one_key_at_a_time_gives_what_a_column_gives(keys: list[bytes]) -> None:
    assert [murmur2(key) for key in keys] == [
        int(number) & 0xFFFF_FFFF for number in murmur2_column(keys)
    ]


@given(st.binary(), st.integers(1, 1_000))
def test_a_key_has_one_of_the_partitions(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions
