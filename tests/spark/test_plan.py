"""How much a batch reads, and how it is cut into tasks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition as TP
from ottla.spark.plan import (
    Cut,
    Limits,
    Span,
    cut,
    fewer_bytes,
    gather,
    limit_offsets,
    spans,
    waits,
)

A, B, C = (TP("t", index) for index in range(3))
sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=6)


def whole(sizes: list[int]) -> list[Span]:
    return [Span(TP("t", at), 10 * at, 10 * at + size) for at, size in enumerate(sizes)]


def test_partitions_without_anything_new_make_no_task() -> None:
    assert spans({A: 5, B: 0, C: 7}, {A: 5, B: 3, C: 6}) == [Span(B, 0, 3)]


def test_a_partition_is_one_task_unless_told_otherwise() -> None:
    assert cut(whole([10, 20]), Cut()) == whole([10, 20])
    assert cut(whole([10, 20]), Cut(min_partitions=2)) == whole([10, 20])


def test_spans_are_cut_to_at_most_so_many_records() -> None:
    assert cut([Span(A, 0, 10)], Cut(max_records=4)) == [
        Span(A, 0, 3),
        Span(A, 3, 6),
        Span(A, 6, 10),
    ]


def test_the_larger_partition_is_cut_into_more() -> None:
    found = cut([Span(A, 0, 100), Span(B, 0, 10)], Cut(min_partitions=5))
    assert [span.partition for span in found] == [A, A, A, A, B]


@given(sizes, st.integers(1, 40) | st.none(), st.integers(1, 3_000) | st.none())
def test_cutting_loses_nothing_repeats_nothing_and_keeps_to_the_limits(
    sizes: list[int], least: int | None, most: int | None
) -> None:
    found = cut(whole(sizes), Cut(least, most))
    for span in whole(sizes):
        parts = [part for part in found if part.partition == span.partition]
        assert (parts[0].start, parts[-1].end) == (span.start, span.end)
        assert all(one.end == following.start for one, following in pairwise(parts))
        assert all(part.size > 0 for part in parts)
        assert most is None or all(part.size <= most for part in parts)
    if least is not None and sum(sizes) >= 4 * least:
        assert len(found) >= least * 0.6  # about: shares are rounded


def test_small_spans_are_one_task_and_large_ones_are_not() -> None:
    small, large = whole([3, 4, 5]), whole([1_000, 1_000])
    assert gather(small, Cut()) == [tuple(small)]
    assert gather(large, Cut()) == [(large[0],), (large[1],)]
    assert gather(small, Cut(together=1)) == [(one,) for one in small]
    assert gather([], Cut()) == []


def test_spans_stay_apart_where_it_was_said_how_many_tasks_there_are() -> None:
    small = whole([3, 4])
    for how in (Cut(min_partitions=2), Cut(max_records=4)):
        assert gather(small, how) == [(one,) for one in small]


@given(sizes, st.integers(1, 20_000))
def test_gathering_keeps_every_span_whole_and_in_order(sizes: list[int], least: int) -> None:
    tasks = gather(whole(sizes), Cut(together=least))
    assert [span for task in tasks for span in task] == whole(sizes)
    assert len(tasks) <= max(sum(sizes) // least, 1) or len(tasks) == len(sizes)


def test_a_limit_is_shared_out_by_how_much_there_is() -> None:
    start, end = {A: 0, B: 0, C: 5}, {A: 900, B: 100, C: 5}
    assert limit_offsets(start, end, 100) == {A: 90, B: 10, C: 5}
    assert limit_offsets(start, end, 1_000) == end


def test_a_small_partition_is_not_starved() -> None:
    assert limit_offsets({A: 0, B: 7}, {A: 10_000, B: 8}, 10)[B] == 8


@given(sizes, st.integers(1, 20_000))
def test_a_limited_batch_gets_on_and_exceeds_its_limit_by_one_a_partition_at_most(
    sizes: list[int], limit: int
) -> None:
    start = {span.partition: span.start for span in whole(sizes)}
    end = {span.partition: span.end for span in whole(sizes)}
    found = limit_offsets(start, end, limit)
    taken = sum(found[tp] - start[tp] for tp in found)
    assert 0 < taken <= limit + len(sizes)
    assert all(start[tp] <= found[tp] <= end[tp] for tp in found)


def test_a_limit_of_bytes_goes_by_what_records_weigh() -> None:
    start, end = {A: 0, B: 0}, {A: 100, B: 100}
    assert fewer_bytes(start, end, 10_000, {A: 100.0, B: 300.0}) == {A: 25, B: 25}
    assert fewer_bytes(start, end, 10**9, {A: 100.0, B: 300.0}) == end
    assert fewer_bytes(start, end, 1, {A: 100.0, B: 300.0}) == {A: 1, B: 1}


def test_a_batch_waits_until_enough_has_come_but_not_for_ever() -> None:
    limits = Limits(min_offsets=10, max_delay_ms=1_000)
    assert waits({A: 0}, {A: 9}, limits, 999)
    assert not waits({A: 0}, {A: 10}, limits, 0)
    assert not waits({A: 0}, {A: 1}, limits, 1_000)
    assert not waits({A: 0}, {A: 1}, limits, None)  # the first batch
    assert not waits({A: 0}, {A: 1}, Limits(), 0)
