from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors.user_data import (
    OwnedPartitions,
    decode_generation,
    decode_owned,
    encode_generation,
    encode_owned,
)
from ottla.model.ids import TopicPartition
from tests.client.consumer.assignors.assignor_groups import parts

PARTITIONS = st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1))


@pytest.mark.spec("CON-38")
def test_the_bytes_are_those_of_the_java_client() -> None:
    """Worked out by hand from its schema: topics, each with its partitions, then a generation."""
    encoded = encode_owned(parts("t1p0 t1p3 up2"), 5)
    assert encoded == bytes.fromhex(
        "00000002 0002 7431 00000002 00000000 00000003 0001 75 00000001 00000002 00000005"
    )
    assert decode_owned(encoded) == OwnedPartitions(tuple(parts("t1p0 t1p3 up2")), 5)


def test_the_oldest_members_send_no_generation() -> None:
    assert decode_owned(encode_owned(parts("tp0"), 5)[:-4]) == OwnedPartitions(
        tuple(parts("tp0")), -1
    )


@given(st.binary(max_size=60))
def test_what_cannot_be_read_counts_as_nothing(data: bytes) -> None:
    held = decode_owned(data)
    assert held == OwnedPartitions() or decode_owned(data).generation >= -(2**31)


@given(st.sets(PARTITIONS, max_size=6), st.integers(-1, 2**31 - 1))
def test_what_is_written_is_read(partitions: set[TopicPartition], generation: int) -> None:
    assert decode_owned(encode_owned(partitions, generation)) == OwnedPartitions(
        tuple(sorted(partitions)), generation
    )


def test_a_generation_alone() -> None:
    assert decode_generation(encode_generation(7)) == 7
    assert decode_generation(None) == decode_generation(b"\0") == -1
