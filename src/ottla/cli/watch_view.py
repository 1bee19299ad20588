"""The same tables again and again: `--watch`, and `ottla top`.

Owns: the pause between two looks, the screen of a terminal, and that Ctrl-C and SIGTERM are good
ends. Never: asks a broker; what is shown is handed in.

On a terminal each look takes the place of the one before. Into a pipe it is appended: JSON as one
value a line, tables under the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import StringIO
from threading import Event
from typing import Annotated, Final, TextIO

import typer

from ottla.cli.argument_parsing import shown_time
from ottla.cli.console import Table, as_value, console, draw, line
from ottla.cli.records.termination import interrupted_by_sigterm
from ottla.model.clock import SystemClock
from ottla.model.errors import KafkaError

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Refresh until interrupted.")]
Interval = Annotated[
    float,
    typer.Option(min=0.1, max=86_400, metavar="SECONDS", help="Refresh this often."),
]
EVERY_S: Final = 2.0
TO_THE_TOP: Final = "\x1b[H"
CLEAR_LINE: Final = "\x1b[K"
CLEAR_BELOW: Final = "\x1b[J"
CLEAR_SCREEN: Final = "\x1b[2J"

Look = Callable[[], Sequence[Table]]


def show_repeatedly(
    look: Look, *, as_json: bool, every_s: float, wait: Callable[[float], object]
) -> int:
    """Show what `look` finds until interrupted; the exit code. `wait` is the pause."""
    screen = _Screen(sys.stdout, as_json)
    try:
        with interrupted_by_sigterm():
            while True:
                try:
                    screen.show(look())
                except (KafkaError, OSError) as failure:
                    if isinstance(failure, BrokenPipeError):
                        raise
                    screen.fail(failure)  # a broker that restarts is back at the next look
                if wait(every_s):
                    return 0
    except KeyboardInterrupt:
        return 0
    finally:
        sys.stdout.flush()


def forever() -> Callable[[float], object]:
    """A pause that nothing but an interrupt ends."""
    return Event().wait


class _Screen:
    """Where looks are shown."""

    def __init__(self, out: TextIO, as_json: bool) -> None:
        self._out = out
        self._as_json = as_json
        self._is_terminal = out.isatty()
        self._is_first = True

    def show(self, tables: Sequence[Table]) -> None:
        if self._as_json:
            print(line(as_value(*tables)), file=self._out, flush=True)
            return
        text = StringIO()
        width = console(self._out).width
        for table in tables:
            if table.rows:
                draw(table, text, width=width)
            else:
                print(f"{table.name}: none", file=text)
        self._put(text.getvalue())

    def fail(self, failure: Exception) -> None:
        print(f"ottla: {failure}", file=sys.stderr, flush=True)

    def _put(self, text: str) -> None:
        now = shown_time(SystemClock().wall_ms())
        if not self._is_terminal:
            print(f"{now}\n{text}", file=self._out, flush=True)
            return
        height = console(self._out).height
        lines = [f"{now}   Ctrl-C ends", *text.splitlines()]
        if len(lines) >= height:
            lines = [*lines[: height - 2], f"... {len(lines) - height + 2} more lines"]
        begin = CLEAR_SCREEN + TO_THE_TOP if self._is_first else TO_THE_TOP
        self._is_first = False
        body = "\n".join(each + CLEAR_LINE for each in lines)
        self._out.write(f"{begin}{body}\n{CLEAR_BELOW}")
        self._out.flush()
