"""The place of a group at a mirror."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.pipelines.group_sync import translate_offset


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), max_size=60),
    st.integers(0, 400),
    st.integers(0, 3),
)
def test_a_group_goes_on_at_the_first_record_it_has_not_had(
    gaps: list[tuple[int, int]], wanted: int, markers: int
) -> None:
    """Offsets grow on both sides, with gaps: markers here, records that were not copied there."""
    here, there, at, origin = [], [], 0, 0
    for step, jump in gaps:
        at, origin = at + step, origin + jump
        here.append(at)
        there.append(origin)
    end = at + 1 + markers

    def probe(offset: int) -> tuple[int, int] | None:
        index = bisect_left(here, offset)
        return (here[index], there[index]) if index < len(here) else None

    placed = translate_offset(wanted, 0, end, probe)
    index = bisect_left(there, wanted)
    if index == len(there):
        assert not here or placed > here[-1], "nothing that it had is read again"
    else:
        assert placed <= here[index], "nothing is left out"
        assert index == 0 or placed > here[index - 1]


def test_an_empty_mirror_is_begun_at_its_start() -> None:
    assert translate_offset(10, 0, 0, lambda _: None) == 0
