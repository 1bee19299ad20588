"""Long work in slices, so that the event loop serves others in between.

Owns how many items a slice has, and how long it may take where a clock is handed in: for items of
which some cost a hundred times as much as others, as those that make files do. State may change
between two slices: callers use the state of the moment for each item, or a snapshot taken before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any, Final, TypeVar

from ottla.model.clock import Clock

T = TypeVar("T")
Ordered = TypeVar("Ordered", bound=str | tuple[Any, ...])
V = TypeVar("V")

SLICE: Final = 200
"""Items between two turns of the loop: 2 ms where an item takes 10 us, as most do."""
PLAIN: Final = 2_000
"""Items between two turns where the interpreter's own loops handle them: under 1 ms."""
FREED: Final = 10_000
"""Objects that are freed between two turns: 1 ms."""
SLICE_NS: Final = 4_000_000
"""After which a slice ends if it has a clock."""


class SliceTime:
    """Whether the slice that began with this has taken long enough. Never early on virtual time."""

    __slots__ = ("_clock", "_until_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_ns = clock.mono_ns() + SLICE_NS

    def is_over(self) -> bool:
        return self._clock.mono_ns() >= self._until_ns


class Slices:
    """Counts the items of one request, in however many loops, nested or not."""

    __slots__ = ("_clock", "_items_left", "_size", "_time")

    def __init__(self, size: int = SLICE, clock: Clock | None = None) -> None:
        self._size = self._items_left = size
        self._clock = clock
        self._time = SliceTime(clock) if clock is not None else None

    def of(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items; before every one that begins a slice the loop has a turn."""
        return _Sliced(self, iter(items))

    async def took(self, count: int) -> None:
        """So many were handled; the loop has its turn once they fill a slice."""
        if not self._items_left or (self._time is not None and self._time.is_over()):
            self._items_left = self._size
            await asyncio.sleep(0)
            if self._clock is not None:
                self._time = SliceTime(self._clock)
        self._items_left = max(0, self._items_left - count)


class _Sliced(AsyncIterator[T]):
    """Not a generator: a loop that is left early leaves nothing to be closed."""

    __slots__ = ("_items", "_slices")

    def __init__(self, slices: Slices, items: Iterator[T]) -> None:
        self._slices = slices
        self._items = items

    async def __anext__(self) -> T:
        for item in self._items:
            await self._slices.took(1)
            return item
        raise StopAsyncIteration


def in_slices(
    items: Iterable[T], size: int = SLICE, clock: Clock | None = None
) -> AsyncIterator[T]:
    """The items of one loop."""
    return Slices(size, clock).of(items)


def sliced(items: Sequence[T], size: int = SLICE) -> list[Sequence[T]]:
    """The items, `size` at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def parts_of(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The same one by one: as a list, the parts of very many items would take long."""
    return (items[start : start + size] for start in range(0, len(items), size))


async def set_of(items: Sequence[T]) -> set[T]:
    """The items as a set, made in slices."""
    made: set[T] = set()
    slices = Slices(PLAIN)
    for some in parts_of(items, PLAIN):
        await slices.took(len(some))
        made.update(some)
    return made


async def in_order(items: Iterable[Ordered]) -> list[Ordered]:
    """As `sorted`: parts of them, each in one piece, which are then merged in slices."""
    unsorted = items if isinstance(items, list) else list(items)
    slices = Slices(PLAIN)
    parts: list[list[Ordered]] = []
    for some in parts_of(unsorted, PLAIN):
        await slices.took(len(some))
        parts.append(sorted(some))
    if len(parts) < 2:
        return parts[0] if parts else []
    return [item async for item in in_slices(merge(*parts))]


async def finished(work: Generator[None, None, T]) -> T:
    """What the work returns; it yields where the loop may have a turn."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        await asyncio.sleep(0)


async def arrays_of(fields: Mapping[str, object]) -> list[list[object]]:
    """Copies of the arrays in a message, and of those in their elements where these are few.

    What is in them is freed with the copies: elements that are many have little in them. Each
    comes before those in its elements.
    """
    arrays: list[list[object]] = []
    slices = Slices(PLAIN)
    structs = [fields]
    while structs:
        await slices.took(1)
        for value in structs.pop().values():
            if isinstance(value, list):
                arrays.append(value[:])
                if len(value) <= SLICE:
                    structs += [element for element in value if isinstance(element, dict)]
    return arrays


async def free(arrays: Iterable[list[T]]) -> None:
    """Let go of the arrays in slices: to free 100,000 objects in one piece takes over 10 ms."""
    slices = Slices(FREED)
    for array in arrays:  # the outer ones first: their elements hold what is in the inner ones
        while array:
            await slices.took(min(len(array), FREED))
            del array[-FREED:]


async def let_go(items: set[T] | dict[T, V]) -> None:
    """Empty a set or a dictionary in slices: as `free` for arrays."""
    take = items.pop if isinstance(items, set) else items.popitem
    while items:
        for _ in range(min(len(items), FREED)):
            take()
        if items:
            await asyncio.sleep(0)


def run_to_end(work: Generator[None, None, T]) -> T:
    """What the work returns, without turns in between."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result


def step_through(work: Generator[None, None, None]) -> None:
    """Run the work up to its first yield now, and from yield to yield in later turns of the loop.

    For callbacks, which have no task of their own to wait in.
    """
    for _ in work:
        asyncio.get_running_loop().call_soon(step_through, work)
        return
