"""How commands show things: tables to people, JSON to programs, progress to those who wait.

Owns: the one place that knows rich. Never: decides what is shown; commands hand over tables.

Rich takes a while to import, so it is imported when a table is drawn and not before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")
PATIENCE_S: Final = 2.0


class Table(NamedTuple):
    """Rows under named columns. `name` heads the table, and is its key among several in JSON."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]


def show(*tables: Table, as_json: bool, file: TextIO | None = None) -> None:
    """Draw tables; or print one JSON value: a list for one table, an object for several."""
    if not as_json:
        for each in tables:
            if each.rows:
                table(each.name, each.columns, each.rows, file)
            else:
                print(f"{each.name}: none", file=file or sys.stdout)
        return
    told = {_key(each.name): [_object(each.columns, row) for row in each.rows] for each in tables}
    value: object = next(iter(told.values())) if len(told) == 1 else told
    print(json.dumps(value, indent=2, default=str), file=file or sys.stdout)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], file: TextIO | None = None
) -> None:
    """Draw a table; numbers stand to the right, so that they can be compared."""
    from rich.table import Table as Drawn

    cells = [[_cell(cell) for cell in row] for row in rows]
    drawn = Drawn(title=title or None, title_justify="left")
    for at, name in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[at]) or row[at] == "-" for row in cells)
        drawn.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for row in cells:
        drawn.add_row(*row)
    console(file or sys.stdout).print(drawn)


def console(file: TextIO) -> Console:
    """Rich's way to a stream. Into a pipe nothing is cut: what reads it wants it whole."""
    from rich.console import Console

    width = None if file.isatty() else 1_000
    return Console(file=file, highlight=False, markup=False, width=width)


def failures(failed: Mapping[Item, Exception]) -> int:
    """Say what did not work, a line each; the exit code."""
    for item, error in failed.items():
        named = str(error).startswith(f"{item}: ")
        print(f"ottla: {error}" if named else f"ottla: {item}: {error}", file=sys.stderr)
    return 1 if failed else 0


@contextmanager
def patience(
    what: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show that something goes on, once it has gone on for two seconds; to people only.

    What it gives is called with how many are done; with a `total` there is a bar, and a guess of
    when it will be over.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    known = () if total is None else (BarColumn(), TimeRemainingColumn())
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[count]}"),
        *known,
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(what, total=total, count="")
    timer = Timer(PATIENCE_S, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done: progress.update(task, completed=done, count=f"{done:,}")
    finally:
        timer.cancel()
        progress.stop()


def _object(columns: Sequence[str], row: Sequence[object]) -> dict[str, object]:
    return {_key(name): cell for name, cell in zip(columns, row, strict=True)}


def _key(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _cell(value: object) -> str:
    match value:
        case None | "" | [] | ():
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(str, value))
        case dict():
            return "\n".join(f"{key}={each}" for key, each in value.items()) or "-"
        case _:
            return str(value)


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "", 1).removeprefix("-").isdigit()
