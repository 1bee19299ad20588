"""Memory is used again, but never while somebody still looks at it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.memory import BufferPool


def place(view: memoryview) -> int:
    """Where in memory it begins."""
    return int(np.frombuffer(view, np.uint8).ctypes.data)


def test_memory_that_nobody_looks_at_is_lent_again() -> None:
    pool = BufferPool(1 << 20)
    first = place(pool.lend(100_000))
    assert place(pool.lend(100_000)) == first
    assert place(pool.lend(99_000)) == first, "a little less is room enough"


@pytest.mark.parametrize("look", [lambda view: view[10:20].toreadonly(), np.asarray, memoryview])
def test_memory_in_view_stays_whose_it_is(look: object) -> None:
    pool = BufferPool(1 << 20)
    lent = pool.lend(50_000)
    lent[:] = b"m" * 50_000
    kept = look(lent)  # type: ignore[operator]
    del lent
    for _ in range(5):
        pool.lend(50_000)[:] = b"x" * 50_000
    assert bytes(kept) == b"m" * len(kept)


@given(st.lists(st.integers(1, 40_000), max_size=30))
def test_everybody_gets_as_much_as_was_asked_for_and_nobody_the_same(sizes: list[int]) -> None:
    pool = BufferPool(100_000)
    lent = [pool.lend(size) for size in sizes]
    for at, view in enumerate(lent):
        view[:] = bytes([at]) * len(view)
    assert [len(view) for view in lent] == sizes
    assert [bytes(view) for view in lent] == [bytes([at]) * size for at, size in enumerate(sizes)]


def test_no_more_is_kept_than_the_limit() -> None:
    pool = BufferPool(100_000)
    pieces = []
    for _ in range(5):
        pieces.append(pool.lend(40_000))
        assert pool.kept_bytes <= 100_000
    pieces.append(pool.lend(200_000))
    assert pool.kept_bytes <= 100_000
