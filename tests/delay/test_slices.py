"""Long work gives the loop a turn after every slice, and loses nothing."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Generator

import pytest

from ottla.delay.slices import (
    FREED,
    PLAIN,
    SLICE,
    SLICE_NS,
    Slices,
    arrays_of,
    finished,
    free,
    in_order,
    in_slices,
    let_go,
    parts_of,
    set_of,
    sliced,
    step_through,
)
from tests.fakes.loop_turns import Turns
from tests.fakes.manual_time import ManualClock


@pytest.mark.parametrize(("items", "size", "turns"), [(0, 3, 0), (3, 3, 0), (4, 3, 1), (10, 3, 3)])
async def test_the_loop_has_a_turn_between_slices(items: int, size: int, turns: int) -> None:
    counted = Turns()
    counted.begin()
    assert [item async for item in in_slices(range(items), size)] == list(range(items))
    assert counted.end() == turns


async def test_a_slice_with_a_clock_ends_when_its_time_is_over() -> None:
    clock, counted, seen = ManualClock(), Turns(), []
    counted.begin()
    async for item in in_slices(range(10), 100, clock):
        seen.append(item)
        clock.ns += SLICE_NS // 2
    assert seen == list(range(10))
    assert counted.end() == 4, "after every second one"


async def test_nested_loops_share_their_slices() -> None:
    """Ten topics of two partitions are thirty items."""

    counted = Turns()
    counted.begin()
    slices = Slices(20)
    seen = [
        (topic, index) async for topic in slices.of(range(10)) async for index in slices.of("ab")
    ]
    assert len(seen) == 20
    assert counted.end() == 1


async def test_a_loop_that_is_left_early_leaves_the_rest_alone() -> None:
    rest = iter(range(10))
    async for item in in_slices(rest, 2):
        if item == 4:
            break
    assert list(rest) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(("count", "lengths"), [(0, []), (4, [3, 1]), (6, [3, 3])])
def test_items_come_so_many_at_a_time(count: int, lengths: list[int]) -> None:
    slices = sliced(list(range(count)), 3)
    assert [len(some) for some in slices] == lengths
    assert [item for some in slices for item in some] == list(range(count))


def _work(done: list[int]) -> Generator[None, None, None]:
    for step in range(3):
        done.append(step)
        yield


async def test_a_callback_steps_through_its_work_turn_by_turn() -> None:
    done: list[int] = []
    step_through(_work(done))
    assert done == [0], "the first step is taken at once"
    await asyncio.sleep(0)
    assert done == [0, 1]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert done == [0, 1, 2]


async def test_what_work_returns_is_known_when_it_is_finished() -> None:
    def work() -> Generator[None, None, str]:
        yield
        return "done"

    assert await finished(work()) == "done"


async def test_what_a_message_holds_is_freed_in_slices() -> None:
    class Held:
        pass

    held = [Held() for _ in range(3 * FREED)]
    left = weakref.WeakSet(held[:1] + held[-1:])
    fields = {"throttle_time": 0, "topics": [{"partitions": held}]}
    arrays = await arrays_of(fields)
    del held, fields
    freeing = asyncio.create_task(free(arrays))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(left) == 1, "the last of them were freed, the first not yet"
    await freeing
    assert not left


async def test_the_arrays_of_a_message_are_looked_for_in_slices() -> None:
    partitions = [{"partition": number, "replicas": [number]} for number in range(SLICE)]
    topics = [{"name": str(number), "partitions": partitions[:]} for number in range(SLICE)]
    counted = Turns()
    counted.begin()
    arrays = await arrays_of({"throttle_time": 0, "topics": topics})
    assert counted.end() >= SLICE * SLICE // PLAIN
    assert arrays[0] == topics
    assert len(arrays) == 1 + SLICE + SLICE * SLICE


@pytest.mark.parametrize("items", [set(range(2 * FREED + 1)), dict.fromkeys(range(2 * FREED + 1))])
async def test_sets_and_dictionaries_are_emptied_in_slices(
    items: set[int] | dict[int, None],
) -> None:
    counted = Turns()
    counted.begin()
    await let_go(items)
    assert not items
    assert counted.end() == 2


@pytest.mark.parametrize("count", [0, 1, PLAIN, 3 * PLAIN + 1])
async def test_many_items_are_sorted_and_made_a_set_in_slices(count: int) -> None:
    items = [str(number * 7919 % 1_000) for number in range(count)]
    counted = Turns()
    counted.begin()
    assert await in_order(items) == sorted(items)
    assert counted.end() >= (count > PLAIN) * count // SLICE
    counted = Turns()
    counted.begin()
    assert await set_of(items) == set(items)
    assert counted.end() == max(0, count - 1) // PLAIN


def test_parts_are_made_one_by_one() -> None:
    assert list(parts_of((1, 2, 3), 2)) == [(1, 2), (3,)]
    assert next(iter(parts_of(range(1 << 40), 2))) == range(2)
