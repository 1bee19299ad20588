"""A program in the background, as the scripts' `-daemon` wants it: a session of its own, a log.

Never: waits for it, or knows how it fares; whoever starts it looks at the log. A Python program
writes there line by line (`PYTHONUNBUFFERED`): Python would otherwise keep lines back for a file,
and mix their order with that of its errors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def start(words: Sequence[str], log: Path) -> int:
    """Start a program that outlives us, its output appended to a file; its process id."""
    log.parent.mkdir(parents=True, exist_ok=True)
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        words[0],
        list(words),
        {**os.environ, "PYTHONUNBUFFERED": "1"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), appended, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
