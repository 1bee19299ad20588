"""Output of commands: tables for people, JSON for programs, progress for long waits.

Owns: the one place that knows rich. Never: decides what is shown; commands hand over tables.

Rich takes a while to import, so it is imported when a table is drawn and not before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Timer
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TextIO, TypeVar

from ottla.cli.table_layout import fit_columns, is_number
from ottla.model.clock import SystemClock
from ottla.model.text import printable

if TYPE_CHECKING:
    from rich.console import Console

Item = TypeVar("Item")
PATIENCE_S: Final = 2.0


class Table(NamedTuple):
    """Rows under named columns. `name` heads the table, and is its key among several in JSON."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    least: tuple[str, ...] = ()
    """Columns that may go on a narrow terminal, the first to go first; none that names a row."""


def show(*tables: Table, as_json: bool, file: TextIO | None = None) -> None:
    """Draw tables; or print one JSON value: a list for one table, an object for several."""
    if not as_json:
        for table in tables:
            if table.rows:
                draw(table, file)
            else:
                print(f"{table.name}: none", file=file or sys.stdout)
        return
    print(json.dumps(as_value(*tables), indent=2, default=str), file=file or sys.stdout)


def show_outcomes(*tables: Table, failed: Mapping[Item, Exception], as_json: bool) -> int:
    """What was found, then a line for each failure; the exit code."""
    if as_json or not failed or any(table.rows for table in tables):
        show(*tables, as_json=as_json)
    return failures(failed)


def as_value(*tables: Table) -> object:
    """Tables as a JSON value."""
    values = {
        _key(table.name): [_object(table.columns, row) for row in table.rows] for table in tables
    }
    return next(iter(values.values())) if len(values) == 1 else values


def line(value: object) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, default=str)


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], file: TextIO | None = None
) -> None:
    """Draw a table with all its columns."""
    draw(Table(title, tuple(columns), list(rows)), file)


def draw(table: Table, file: TextIO | None = None, *, width: int | None = None) -> None:
    """Draw a table; numbers are right-aligned."""
    from rich.table import Table as Drawn

    screen = console(file or sys.stdout, width=width)
    cells = [[_cell(cell) for cell in row] for row in table.rows]
    layout = fit_columns(table.columns, cells, table.least, screen.width)
    drawn = Drawn(title=table.name or None, title_justify="left", show_header=not layout.is_turned)
    if layout.is_turned:
        drawn.add_column(overflow="fold")
        drawn.add_column(overflow="fold")
        for row in cells:
            for name, cell in zip(table.columns, row, strict=True):
                drawn.add_row(name, cell, end_section=name == table.columns[-1])
        screen.print(drawn)
        return
    for index, width in layout.widths.items():
        numeric = bool(cells) and all(is_number(row[index]) or row[index] == "-" for row in cells)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        drawn.add_column(table.columns[index], justify=justify, overflow="fold", width=width)
    for row in cells:
        drawn.add_row(*(row[index] for index in layout.widths))
    screen.print(drawn)
    if layout.dropped:
        screen.print(f"(no room for: {', '.join(layout.dropped)}; see --json)")


def console(file: TextIO, *, width: int | None = None) -> Console:
    """Rich's console for a stream; a pipe is wide enough that nothing is cut."""
    from rich.console import Console

    if width is None and not file.isatty():
        width = 1_000
    return Console(file=file, highlight=False, markup=False, width=width)


def failures(failed: Mapping[Item, Exception]) -> int:
    """Print a line for each failure; the exit code."""
    for item, error in failed.items():
        names_item = str(error).startswith(f"{item}: ")
        print(f"ottla: {error}" if names_item else f"ottla: {item}: {error}", file=sys.stderr)
    return 1 if failed else 0


def elapsed_seconds(timeout_s: float, every_s: float) -> Iterator[float]:
    """Seconds since the first call, at once and then every so often, until the time is over."""
    clock, pause = SystemClock(), Event()
    began_ms = clock.mono_ms()
    while (seconds := (clock.mono_ms() - began_ms) / 1e3) <= timeout_s:
        yield seconds
        pause.wait(every_s)


@contextmanager
def patience(
    what: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show progress on a terminal, once something has taken two seconds.

    The yielded function is called with the number done; with a `total` a bar and the estimated
    remaining time are shown.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    total_columns = () if total is None else (BarColumn(), TimeRemainingColumn())
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[count]}"),
        *total_columns,
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
            return printable(",".join(map(str, value)))
        case dict():
            return "\n".join(printable(f"{key}={each}") for key, each in value.items()) or "-"
        case _:
            return printable(str(value))
