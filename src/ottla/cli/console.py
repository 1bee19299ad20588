"""How tables are shown to people.

Owns: the one place that knows rich. Never: decides what is shown; commands hand over rows.

Rich takes a while to import, so it is imported when a table is drawn and not before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], file: TextIO | None = None
) -> None:
    """Draw a table; numbers stand to the right, so that they can be compared."""
    from rich.console import Console
    from rich.table import Table

    cells = [[str(cell) for cell in row] for row in rows]
    drawn = Table(title=title or None, title_justify="left")
    for at, name in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[at]) for row in cells)
        drawn.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for row in cells:
        drawn.add_row(*row)
    Console(file=file or sys.stdout, highlight=False, markup=False).print(drawn)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).removeprefix("-").isdigit()
