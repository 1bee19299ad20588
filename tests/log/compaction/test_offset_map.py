"""Promises of `ottla.log.compaction.offset_map`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.compaction.offset_map import ABSENT, ENTRY_BYTES, OffsetMap

pytestmark = pytest.mark.spec("LOG-69")


@given(st.lists(st.binary(max_size=3), max_size=200))
def test_the_map_answers_like_a_dict_of_the_last_offsets(keys: list[bytes]) -> None:
    table, model = OffsetMap(slots=256), dict[bytes, int]()
    for offset, key in enumerate(keys):
        table.put(key, offset)
        model[key] = offset
    assert {key: table.get(key) for key in model} == model
    assert table.size == len(model)
    assert table.get(b"never put") == ABSENT


def test_an_entry_costs_24_bytes_and_the_buffer_is_the_bound() -> None:
    table = OffsetMap.fitting(1_000_000, buffer_bytes=100 * ENTRY_BYTES, load_factor=0.9)
    assert table.capacity == 90
    for offset in range(90):
        assert not table.full
        table.put(b"%d" % offset, offset)
    assert table.full


def test_a_small_log_takes_a_small_table() -> None:
    table = OffsetMap.fitting(10, buffer_bytes=1 << 27, load_factor=0.9)
    assert 10 <= table.capacity < 20


@pytest.mark.parametrize("slots", [2, 3, 7])
def test_a_table_filled_to_its_bound_still_answers_for_absent_keys(slots: int) -> None:
    table = OffsetMap(slots, load_factor=1.0)
    for offset in range(table.capacity):
        table.put(b"%d" % offset, offset)
    assert all(table.get(b"%d" % offset) == offset for offset in range(table.capacity))
    assert table.get(b"absent") == ABSENT
