"""The `ottla` program on a terminal of its own, as a person uses it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence

DEADLINE_S = 60


def on_a_terminal(
    words: Sequence[str], until: str, answer: str, *, columns: int = 80, lines: int = 24
) -> tuple[int, str]:
    """Run it, wait for a text, type a line; its exit code and all that the terminal showed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},  # a dumb one would have 80 columns
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C is a signal
    )
    os.close(slave)
    try:
        shown = _read(master, until)
        os.write(master, f"{answer}\n".encode())
        shown += _read(master, None)
        return process.wait(DEADLINE_S), shown
    finally:
        process.kill()
        process.wait()
        os.close(master)


def is_readable(descriptor: int, timeout_s: float) -> bool:
    """Whether there is something to read within this time, whatever the descriptor's number."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1e3))


def _read(master: int, until: str | None) -> str:
    """What the terminal shows, up to a text or to its end."""
    shown, deadline = "", time.monotonic() + DEADLINE_S
    while until is None or until not in shown:
        left = deadline - time.monotonic()
        assert left > 0 and is_readable(master, left), f"waited for {until}: {shown}"
        try:
            data = os.read(master, 65_536)
        except OSError:  # the other side is closed
            data = b""
        if not data:
            assert until is None, f"ended before {until}: {shown}"
            break
        shown += data.decode(errors="replace")
    return shown
