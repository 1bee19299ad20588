"""The quick way from lists gives the records that the long way gives."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import UserError
from ottla.protocol.records.batch import build
from ottla.protocol.records.columns.encode import write_lists
from ottla.protocol.records.header import HEADER_SIZE
from ottla.protocol.records.record import NewRecord
from tests.protocol.records.samples import new_records

Bytes = list[bytes | None]


def written(keys: Bytes | None, values: Bytes, times: Any, now_ms: int) -> tuple[Any, int, int]:
    found = write_lists(keys, values, times, now_ms, 1 << 30)
    assert found is not None
    return found


records = new_records.map(lambda record: record._replace(headers=()))


@given(st.lists(records, min_size=1, max_size=150), st.sampled_from([list, tuple, "q"]))
def test_records_are_those_of_plain_python(rows: list[NewRecord], form: object) -> None:
    times = [row.timestamp for row in rows]
    given_times = array("q", times) if form == "q" else times
    keys, values = [row.key for row in rows], [row.value for row in rows]
    out, base_time, max_time = written(keys, values, given_times, 0)
    assert out[HEADER_SIZE:].tobytes() == build(rows)[HEADER_SIZE:]
    assert (base_time, max_time) == (times[0], max(times))


@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 8190, 8191, 8192, 1 << 20, (1 << 20) + 1])
def test_there_is_room_for_fields_of_any_size(size: int) -> None:
    rows = [NewRecord(bytes(size), bytes(size), (), 0), NewRecord(b"", None, (), 2**62)]
    out, _, _ = written(
        [row.key for row in rows], [row.value for row in rows], [row.timestamp for row in rows], 0
    )
    assert out[HEADER_SIZE:].tobytes() == build(rows)[HEADER_SIZE:]


def test_without_keys_and_times_there_are_values_and_now() -> None:
    out, base_time, max_time = written(None, [b"a", None], None, 7)
    rows = [NewRecord(None, b"a", (), 7), NewRecord(None, None, (), 7)]
    assert out[HEADER_SIZE:].tobytes() == build(rows)[HEADER_SIZE:]
    assert (base_time, max_time) == (7, 7)


def test_impossible_timestamps_are_refused() -> None:
    with pytest.raises(UserError, match="timestamp: expected"):
        written(None, [b""], [-2], 0)


@pytest.mark.parametrize("limit", [61, 70, 159, 160])
def test_what_is_more_than_one_batch_is_left_to_others(limit: int) -> None:
    whole = written(None, [b"x" * 40] * 2, None, 0)[0]
    assert len(whole) == 155
    found = write_lists(None, [b"x" * 40] * 2, None, 0, limit)
    assert (found is None) == (limit < len(whole))
