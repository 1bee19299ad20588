"""The process that runs a pipeline: one for each folder of checkpoints.

Owns: that there is no second one, whether it runs, its stop; and for a run in the background its
start apart from the terminal, and its output in `run.log`. Never: runs a query; the process is
`ottla pipeline run` itself.

The process holds a lock on `run.json`, which has its number, for as long as it lives. A number
alone may belong to another process by the time it is read; the lock is free when the process is
gone, however it ended. Two runs of the same checkpoints would end each other's batches.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from ottla.model.clock import Clock, MonoMs, WallMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.checkpoint_owner import local_folder

RUN: Final = "run.json"
LOG: Final = "run.log"
LOCK_FILE: Final = "OTTLA_RUN_LOCK"
"""In the environment of a run that was started in the background: the file that has its lock."""
TAIL_BYTES: Final = 1_000_000
"""How much of a log or a history is read from its end."""
POLL_S: Final = 0.2

Wait = Callable[[float], object]


@dataclass(frozen=True)
class LastRun:
    """The last run of some checkpoints."""

    pid: int
    started_ms: WallMs
    is_running: bool


def start(checkpoint: str, command: Sequence[str], clock: Clock) -> int:
    """Start the command on its own; its process number. UserError if one runs already."""
    folder = _folder(checkpoint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / RUN).open("a+") as run:
            _lock_for_run(run.fileno(), folder)
            with (folder / LOG).open("ab") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env={**os.environ, LOCK_FILE: str(run.fileno())},
                    pass_fds=[run.fileno()],  # locked as long as a process has the file open
                )
            _write(run, process.pid, clock)
    except OSError as error:
        raise UserError(f"checkpoint: {folder}: {error.strerror}") from None
    process.returncode = 0  # it is not waited for, on purpose
    return process.pid


@contextmanager
def run_lock(checkpoint: str, clock: Clock) -> Iterator[None]:
    """This process is the run of these checkpoints, until the block ends; UserError if another is.

    Checkpoints elsewhere than on a local disk are not locked.
    """
    folder = local_folder(checkpoint)
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        run = (folder / RUN).open("a+")
    except OSError as error:
        raise UserError(f"checkpoint: {folder}: {error.strerror}") from None
    with run:
        if not _is_inherited(run.fileno()):
            _lock_for_run(run.fileno(), folder)
            _write(run, os.getpid(), clock)
        yield


def find(checkpoint: str) -> LastRun | None:
    """The last run of these checkpoints; None if there was none."""
    folder = _folder(checkpoint)
    fields = _read(folder)
    if not fields:
        return None
    with (folder / RUN).open("a+") as run:
        return LastRun(
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


def has_log(checkpoint: str) -> bool:
    """Whether there was a run in the background."""
    return (_folder(checkpoint) / LOG).is_file()


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


def _lock_for_run(descriptor: int, folder: Path) -> None:
    if not _lock(descriptor):
        pid = _read(folder).get("pid")
        raise UserError(f"{folder}: already running (process {pid}); ottla pipeline stop ends it")


def _is_inherited(descriptor: int) -> bool:
    """Whether this process got the lock of this file from the one that started it."""
    try:
        return os.path.samestat(os.fstat(int(os.environ[LOCK_FILE])), os.fstat(descriptor))
    except (KeyError, ValueError, OSError):
        return False


def _write(run: TextIO, pid: int, clock: Clock) -> None:
    run.truncate(0)
    run.write(json.dumps({"pid": pid, "started_ms": clock.wall_ms()}) + "\n")
    run.flush()


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Whether the lock was free; it is kept while the file is open."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
