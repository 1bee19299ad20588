"""Long work in slices, so that the event loop serves others in between.

Owns how many items a slice has. State may change between two slices: callers use the state of the
moment for each item, or a snapshot taken before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLICE: Final = 200
"""Items between two turns of the loop: 2 ms where an item takes 10 us, as most do."""


class Slices:
    """Counts the items of one request, in however many loops, nested or not."""

    __slots__ = ("_left", "_size")

    def __init__(self, size: int = SLICE) -> None:
        self._size = self._left = size

    def of(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items; before every one that begins a slice the loop has a turn."""
        return _Sliced(self, iter(items))

    async def took(self, count: int) -> None:
        """So many were handled; the loop has its turn once they fill a slice."""
        if not self._left:
            self._left = self._size
            await asyncio.sleep(0)
        self._left = max(0, self._left - count)


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


def in_slices(items: Iterable[T], size: int = SLICE) -> AsyncIterator[T]:
    """The items of one loop."""
    return Slices(size).of(items)


def sliced(items: Sequence[T], size: int = SLICE) -> list[Sequence[T]]:
    """The items, `size` at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]


async def finished(work: Generator[None, None, T]) -> T:
    """What the work returns; it yields where the loop may have a turn."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
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
