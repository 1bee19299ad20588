"""Memory is used again, but never while somebody still looks at it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from ottla.protocol.records.columns.arrays import MAX_KEPT_BYTES, Room, Scratch, fresh, pooled_array
from ottla.protocol.records.columns.decode import decode_batches
from ottla.protocol.records.columns.record_lists import decode_records
from tests.protocol.records.columns.batches import numbered


@pytest.mark.parametrize("room", [fresh, pooled_array, Scratch().room])
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, np.uint8])
def test_an_array_is_as_long_as_asked_and_can_be_written(
    room: Room, kind: type[np.integer[Any]]
) -> None:
    for count in (5, 0, 9):
        array = room(kind.__name__, count, kind)
        array[:] = 7
        assert array.tolist() == [7] * count
        assert array.dtype == kind


def test_the_memory_of_columns_that_are_gone_serves_the_next() -> None:
    data = numbered(20_000)
    first = decode_batches(data).batch["value"]
    place = first.buffers()[2].address
    again = decode_batches(data).batch["value"]
    assert again.buffers()[2].address != place
    assert again.equals(first)
    del first
    assert decode_batches(data).batch["value"].buffers()[2].address == place


def test_scratch_is_the_same_memory_again_for_one_thread() -> None:
    scratch = Scratch()
    first = scratch.room("values", 100, np.uint8)
    assert np.shares_memory(first, scratch.room("values", 50, np.uint8))
    assert not np.shares_memory(first, scratch.room("keys", 50, np.uint8))
    others: list[object] = []
    thread = threading.Thread(target=lambda: others.append(scratch.room("values", 50, np.uint8)))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, others[0])


def test_what_is_very_large_is_not_kept() -> None:
    scratch = Scratch()
    first = scratch.room("values", MAX_KEPT_BYTES + 1, np.uint8)
    assert not np.shares_memory(first, scratch.room("values", 10, np.uint8))


def test_rows_of_one_call_are_not_touched_by_the_next() -> None:
    tables = [decode_batches(numbered(50, at=at)).batch for at in range(0, 200, 50)]
    lists = [decode_records(numbered(50, at=at)).values for at in range(0, 200, 50)]
    expected = [b"%d" % at for at in range(200)]
    assert [value for table in tables for value in table["value"].to_pylist()] == expected
    assert [value for values in lists for value in values] == expected
