"""Promises of `ottla.log.dump.rows`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.log.dump.rows import Row, Uncertain, base_offset, line_of, text_of
from ottla.model.errors import UserError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-1, "-1"),
        (Uncertain(None), "OptionalLong.empty"),
        (Uncertain(0), "OptionalLong[0]"),
        (["a", "b"], "[a,b]"),
        ([], "[]"),
        ("zstd", "zstd"),
    ],
)
def test_values_are_written_as_java_writes_them(value: object, text: str) -> None:
    assert text_of(value) == text


def test_a_records_row_is_set_off_from_its_batch() -> None:
    fields: dict[str, object] = {"offset": 3, "isValid": True}
    assert line_of(Row(fields)) == "offset: 3 isValid: true"
    assert line_of(Row(fields, of_record=True)) == "| offset: 3 isValid: true"


def test_a_segment_is_named_after_its_first_offset() -> None:
    assert base_offset(Path("x/00000000000000000123.timeindex")) == 123
    with pytest.raises(UserError, match=r"first\.log: expected a name such as 0000"):
        base_offset(Path("first.log"))
