"""Columns padded with blanks, as Kafka's tools print tables: people cut them apart with awk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.model.text import printable

MISSING = "-"


class Column(NamedTuple):
    """A heading and its least width; 0 for the last one, which is not padded."""

    heading: str
    least: int
    grows: bool = False


def lines(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
    """The headings and the rows. A column that grows is as wide as its widest cell."""
    cells = [[column.heading for column in columns], *([_cell(one) for one in row] for row in rows)]
    widths = [
        max(column.least, *(len(row[at]) for row in cells[1:]))
        if column.grows and rows
        else column.least
        for at, column in enumerate(columns)
    ]
    return [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]


def _cell(value: object) -> str:
    return MISSING if value is None or value == "" else printable(str(value))
