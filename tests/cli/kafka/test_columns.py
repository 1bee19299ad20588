from __future__ import annotations

from ottla.cli.kafka.columns import Column, lines


def test_columns_are_padded_and_those_that_may_grow_do() -> None:
    columns = (Column("NAME", 5, grows=True), Column("N", 3), Column("LAST", 0))
    assert lines(columns, [("longer than five", 7, None), ("a", 12345, "end")]) == [
        "NAME             N   LAST",
        "longer than five 7   -",
        "a                12345 end",
    ]


def test_without_rows_there_are_headings() -> None:
    assert lines((Column("A", 3, grows=True), Column("B", 0)), []) == ["A   B"]
