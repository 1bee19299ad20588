from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ottla
from ottla.cli.groups.plan import Bounds, OffsetMove, ResetTarget, at_time, bounds, plan_offsets
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ROOM = {A: Bounds(5, 10), B: Bounds(0, 3)}


@pytest.mark.parametrize(
    ("wish", "offsets"),
    [
        (ResetTarget(OffsetMove.EARLIEST), (5, 0)),
        (ResetTarget(OffsetMove.LATEST), (10, 3)),
        (ResetTarget(OffsetMove.CURRENT), (7, 3)),
        (ResetTarget(OffsetMove.OFFSET, 8), (8, 3)),
        (ResetTarget(OffsetMove.TIME), (6, 3)),
    ],
)
def test_each_move_has_its_offset_within_the_partition(
    wish: ResetTarget, offsets: tuple[int, int]
) -> None:
    assert plan_offsets(wish, ROOM, {A: 7}, {A: 6, B: None}) == dict(
        zip((A, B), offsets, strict=True)
    )


@given(st.integers(-100, 100), st.integers(0, 20), st.integers(0, 20), st.integers(0, 30))
def test_no_offset_ever_leaves_its_partition(
    shift: int, start: int, length: int, committed: int
) -> None:
    room = {A: Bounds(start, start + length)}
    [offset] = plan_offsets(ResetTarget(OffsetMove.SHIFT, shift), room, {A: committed}, {}).values()
    assert start <= offset <= start + length


def test_what_was_never_committed_cannot_be_shifted() -> None:
    with pytest.raises(UserError, match="--shift-by: the group has no committed offset for t-1"):
        plan_offsets(ResetTarget(OffsetMove.SHIFT, 1), ROOM, {A: 7}, {})


def test_bounds_and_times_are_asked_for(admin: ottla.Admin, topic: str) -> None:
    here = TopicPartition(topic, 0)
    assert bounds(admin, [here]) == {here: Bounds(0, 0)}
    assert at_time(admin, [here], 0) == {here: None}
