from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.fetch.partition_selection import (
    LARGE_BYTES,
    MOST_FETCHES,
    PartitionSelection,
)
from ottla.client.consumer.position.partition_position import AssignedPartition
from ottla.model.ids import TopicPartition


def parts(count: int) -> list[AssignedPartition]:
    return [AssignedPartition(TopicPartition("t", at)) for at in range(count)]


def doubled() -> PartitionSelection:
    selection = PartitionSelection()
    assert selection.on_response(LARGE_BYTES, 2)
    return selection


def test_one_fetch_asks_for_everything() -> None:
    wanted = parts(5)
    assert PartitionSelection().take(wanted) == (wanted, False)


def test_two_fetches_have_half_each_and_the_first_says_that_it_leaves_some() -> None:
    wanted, selection = parts(5), doubled()
    assert selection.take(wanted) == (wanted[:3], True)
    assert selection.take(wanted) == (wanted[3:], False)
    assert selection.take(wanted) == ([], False)


def test_what_was_answered_for_is_asked_for_again() -> None:
    wanted, selection = parts(4), doubled()
    first, _ = selection.take(wanted)
    selection.take(wanted)
    selection.give_back(part.tp for part in first)
    assert selection.take(wanted) == (first, False)


def test_a_second_fetch_is_for_large_replies_of_several_partitions() -> None:
    selection = PartitionSelection()
    assert not selection.on_response(LARGE_BYTES - 1, 2)
    assert not selection.on_response(LARGE_BYTES, 1), "there would be nothing left for it"
    assert selection.on_response(LARGE_BYTES, 2)
    assert not selection.on_response(LARGE_BYTES, 2), "two are enough"


def test_when_the_second_fetch_fails_the_first_asks_for_all() -> None:
    wanted, selection = parts(4), doubled()
    selection.take(wanted)
    selection.take(wanted)
    selection.give_back(part.tp for part in wanted)
    selection.on_task_ended()
    assert selection.take(wanted) == (wanted, False)


def test_what_has_no_new_records_is_not_asked_for_while_others_are_read() -> None:
    idle, new = parts(2)
    idle.fetch_offset = idle.high_watermark = 7
    selection = PartitionSelection()
    assert selection.take([idle], unread=True) == ([], False)
    assert selection.take([idle, new], unread=True) == ([new, idle], False), "it will not wait"
    selection.give_back([idle.tp])
    assert selection.take([idle, new], unread=True) == ([], False), "the other is asked for already"
    assert selection.take([idle, new], unread=False) == ([idle], False)


def at_end(part: AssignedPartition) -> AssignedPartition:
    part.fetch_offset = part.high_watermark = 7
    return part


def test_one_of_two_fetches_waits_for_all_that_has_nothing_new() -> None:
    """Seen: each waited for some, and the rest of a third was asked for half a second later."""
    *idle, new = parts(4)
    wanted, selection = [*map(at_end, idle), new], doubled()
    assert selection.take(wanted) == ([new, idle[0]], True), "those with more come first"
    assert selection.take(wanted) == (idle[1:], False), "they may wait: the first comes back soon"
    selection.give_back([new.tp, idle[0].tp])
    assert selection.take(wanted) == ([new, idle[0]], False)
    selection.give_back([new.tp, idle[0].tp])
    selection.give_back(part.tp for part in idle[1:])
    at_end(new)
    assert selection.take(wanted) == (wanted, False), "nobody is left out"


def test_records_that_are_not_committed_are_none_to_whoever_reads_committed_ones() -> None:
    (part,) = parts(1)
    part.fetch_offset, part.stable_offset, part.high_watermark = 7, 7, 9
    assert PartitionSelection(read_committed=True).take([part], unread=True) == ([], False)
    assert PartitionSelection().take([part], unread=True) == ([part], False)


@given(st.lists(st.booleans(), max_size=9), st.lists(st.integers(0, 99), max_size=40))
def test_whoever_waits_leaves_nothing_out_that_may_have_more(
    quiet: list[bool], turns: list[int]
) -> None:
    """Each turn a fetch begins, or one that waits for nothing ends; then a partition changes."""
    wanted, selection = parts(len(quiet)), doubled()
    for part, is_quiet in zip(wanted, quiet, strict=True):
        part.fetch_offset, part.high_watermark = 7, 7 if is_quiet else 9
    under_way: list[list[AssignedPartition]] = []
    for turn in turns:
        waiting = [share for share in under_way if all(part.is_at_end(False) for part in share)]
        on_response = next((share for share in under_way if share not in waiting), None)
        if len(under_way) < MOST_FETCHES:
            share, _ = selection.take(wanted)
            under_way += [share] if share else []
        elif on_response is not None:
            under_way.remove(on_response)
            selection.give_back(part.tp for part in on_response)
        else:
            asked = [part for share in waiting for part in share]
            assert set(asked) == set(wanted)
        if wanted:
            changed = wanted[turn % len(wanted)]
            changed.high_watermark = 7 if turn >= 50 else 9


@given(st.integers(0, 9), st.lists(st.booleans(), max_size=20))
def test_nothing_is_asked_for_twice_and_nothing_is_left_when_all_have_asked(
    count: int, ends: list[bool]
) -> None:
    wanted, selection = parts(count), doubled()
    under_way: list[list[AssignedPartition]] = []
    for ends_first in ends:
        if under_way and (ends_first or len(under_way) == MOST_FETCHES):
            selection.give_back(part.tp for part in under_way.pop(0))
        else:
            under_way.append(selection.take(wanted)[0])
    while len(under_way) < MOST_FETCHES:
        under_way.append(selection.take(wanted)[0])
    asked = [part for share in under_way for part in share]
    assert len(asked) == len(set(asked))
    assert set(asked) == set(wanted)
