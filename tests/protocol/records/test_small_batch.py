"""Small batches of our own are what any batch of these records would be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.records.batch import Pair, build, build_plain, crc_ok
from ottla.protocol.records.header import CONTROL_BIT, TRANSACTIONAL_BIT
from ottla.protocol.records.record import NewRecord

KEYS = st.binary(max_size=300)
PAIRS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=20_000)), min_size=1, max_size=20)


@given(PAIRS, st.integers(0, 2**62), st.booleans(), st.integers(-1, 2**62), st.integers(-1, 32_767))
def test_the_bytes_are_those_of_a_batch_built_the_long_way(
    pairs: list[Pair], timestamp: int, ends: bool, producer_id: int, epoch: int
) -> None:
    quick = build_plain(
        pairs,
        timestamp,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT if ends else 0,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    assert quick == build(
        [NewRecord(key, value, (), timestamp) for key, value in pairs],
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=ends,
        control=ends,
    )
    assert crc_ok(quick)


def test_many_records_and_long_ones_have_sizes_of_more_than_one_byte() -> None:
    pairs: list[Pair] = [(b"k" * (number % 300), b"v" * number) for number in range(400)]
    assert build_plain(pairs, 5) == build([NewRecord(*pair, (), 5) for pair in pairs])
