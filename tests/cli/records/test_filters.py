from __future__ import annotations

import pytest

from ottla.cli.records.printing import record_filter
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

RECORD: Record[bytes, bytes] = Record("t", 0, 0, 0, 0, b"key-1", b"value", (("src", b"shop"),))
TOMBSTONE: Record[bytes, bytes] = Record("t", 0, 0, 0, 0, None, None)


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ([], True),
        (["key=^key"], True),
        (["value=al"], True),
        (["header.src=shop"], True),
        (["key=^key", "value=nothing"], False),
        (["header.other=shop"], False),
    ],
)
def test_all_filters_must_hold(filters: list[str], passes: bool) -> None:
    assert record_filter(filters)(RECORD) is passes


def test_nothing_is_found_in_what_is_not_there() -> None:
    assert not record_filter(["value="])(TOMBSTONE)
    assert record_filter([])(TOMBSTONE)


@pytest.mark.parametrize("text", ["value", "offset=1", "header.=x", "value=("])
def test_a_filter_that_is_none_says_what_was_expected(text: str) -> None:
    with pytest.raises(UserError, match=r"--filter .*: expected"):
        record_filter([text])
