"""How a table fits a terminal.

Pure. Owns: what gives way when there are too few columns. First the columns that a table calls
least important are dropped, one after another; what is still too wide is folded, never cut. A
table that cannot fit even so is turned: a line for each cell. Columns that identify a row are never
among those that may go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

EDGE: Final = 3  # of each column: a border and two spaces
READABLE: Final = 20  # a text column of this width may be folded, and is still easy to read
NARROW: Final = 8  # what is left of it where nothing else can go


class Layout(NamedTuple):
    """The columns that are shown, by index, with their widths; turned: a line for each cell."""

    widths: Mapping[int, int]
    dropped: tuple[str, ...] = ()
    is_turned: bool = False


def fit_columns(
    columns: Sequence[str], cells: Sequence[Sequence[str]], least: Sequence[str], width: int
) -> Layout:
    """The layout of a table on a terminal of so many columns."""
    columns_shown = {
        index: _column(name, [row[index] for row in cells]) for index, name in enumerate(columns)
    }
    dropped: list[str] = []
    for name in least:
        if _total(column.readable for column in columns_shown.values()) <= width:
            break
        del columns_shown[columns.index(name)]
        dropped.append(name)
    widths = {index: column.natural for index, column in columns_shown.items()}
    _shrink(widths, {index: column.readable for index, column in columns_shown.items()}, width)
    _shrink(widths, {index: column.narrow for index, column in columns_shown.items()}, width)
    if _total(widths.values()) > width:
        return Layout({index: 0 for index in range(len(columns))}, is_turned=True)
    return Layout(widths, tuple(dropped))


def is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).removeprefix("-").isdigit()


class _Column(NamedTuple):
    """How wide a column would be, how wide it should be, and how wide it must be."""

    natural: int
    readable: int
    narrow: int


def _column(name: str, cells: Sequence[str]) -> _Column:
    """Text may be folded and headings broken between words; a number is never broken."""
    heading = max(map(len, name.split()), default=1)
    content = max((len(line) for cell in cells for line in cell.splitlines()), default=0)
    if all(is_number(cell) or cell == "-" for cell in cells):
        least = max(heading, content)
        return _Column(max(len(name), content), least, least)
    return _Column(
        max(len(name), content),
        max(heading, min(content, READABLE)),
        max(heading, min(content, NARROW)),
    )


def _shrink(widths: dict[int, int], least: Mapping[int, int], most: int) -> None:
    """Take from the columns that have the most to give, until it fits or nothing is left."""
    while _total(widths.values()) > most:
        index = max(widths, key=lambda one: widths[one] - least[one])
        if widths[index] <= least[index]:
            return
        over = _total(widths.values()) - most
        others = max((widths[one] - least[one] for one in widths if one != index), default=0)
        spare = widths[index] - least[index]
        widths[index] -= min(over, max(spare - others, 1))


def _total(widths: Iterable[int]) -> int:
    return sum(width + EDGE for width in widths) + 1
