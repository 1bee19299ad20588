"""A pipeline's run in the background: one process for each folder of checkpoints.

Owns: starting it apart from the terminal, whether it runs, its stop, and its output in `run.log`.
Never: runs a query; the process is `ottla pipeline run` itself.

The process holds a lock on `run.json`, which has its number, for as long as it lives. A number
alone may belong to another process by the time it is read; the lock is free when the process is
gone, however it ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ottla.model.clock import Clock, MonoMs, WallMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.checkpoint_owner import local_folder

RUN: Final = "run.json"
LOG: Final = "run.log"
TAIL_BYTES: Final = 1_000_000
"""How much of a log or a history is read from its end."""
POLL_S: Final = 0.2

Wait = Callable[[float], object]


@dataclass(frozen=True)
class BackgroundRun:
    """The last run that was started in the background."""

    pid: int
    started_ms: WallMs
    is_running: bool


def start(checkpoint: str, command: Sequence[str], clock: Clock) -> int:
    """Start the command on its own; its process number. UserError if one runs already."""
    folder = _folder(checkpoint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / RUN).open("a+") as run, (folder / LOG).open("ab") as output:
            if not _lock(run.fileno()):
                raise UserError(f"{folder}: already running (process {_read(folder).get('pid')})")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[run.fileno()],  # the lock lives as long as a process has the file open
            )
            run.truncate(0)
            run.write(json.dumps({"pid": process.pid, "started_ms": clock.wall_ms()}) + "\n")
    except OSError as error:
        raise UserError(f"checkpoint: {folder}: {error.strerror}") from None
    process.returncode = 0  # it is not waited for, on purpose
    return process.pid


def find(checkpoint: str) -> BackgroundRun | None:
    """The last run of these checkpoints; None if there was none in the background."""
    folder = _folder(checkpoint)
    fields = _read(folder)
    if not fields:
        return None
    with (folder / RUN).open("a+") as run:
        return BackgroundRun(
            int(fields["pid"]),
            WallMs(int(fields["started_ms"])),
            not _lock(run.fileno(), fcntl.LOCK_SH),
        )


def stop(checkpoint: str, clock: Clock, wait: Wait, timeout_ms: int) -> bool:
    """End a run between two batches; False if it had not ended in time, or there is none."""
    run = find(checkpoint)
    if run is None or not run.is_running:
        return False
    os.kill(run.pid, signal.SIGTERM)
    until_ms = MonoMs(clock.mono_ms() + timeout_ms)
    while clock.mono_ms() < until_ms:
        run = find(checkpoint)
        if run is None or not run.is_running:
            return True
        wait(POLL_S)
    return False


def log_lines(checkpoint: str, lines: int) -> list[str]:
    """The end of what the run has printed."""
    path = _folder(checkpoint) / LOG
    return tail(path).splitlines()[-lines:] if path.is_file() else []


def follow_log(checkpoint: str, wait: Wait) -> Iterator[str]:
    """What the run prints from now on, until it ends."""
    path = _folder(checkpoint) / LOG
    with path.open(encoding="utf-8", errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while True:
            run = find(checkpoint)
            text = log.read()
            if text:
                yield text
            if run is None or not run.is_running:
                return
            wait(POLL_S)


def tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """The end of a file, from the beginning of a line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - limit, 0))
        if size > limit:
            file.readline()
        return file.read().decode(errors="replace")


def _folder(checkpoint: str) -> Path:
    folder = local_folder(checkpoint)
    if folder is None:
        raise UserError(
            f"checkpoint: {checkpoint}: running in the background needs a folder on a local disk"
        )
    return folder


def _read(folder: Path) -> dict[str, Any]:
    try:
        fields = json.loads((folder / RUN).read_text() or "{}")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {folder / RUN}: {error}") from None
    return fields if isinstance(fields, dict) else {}


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Whether the lock was free; it is kept while the file is open."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
