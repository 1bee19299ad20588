"""A pipeline runs once at a time, in the foreground or in the background."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Event

import pytest

from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.spark.pipelines import background

CLOCK = SystemClock()
LIMIT_MS = 60_000
AS_RUN_DOES = """
import signal, sys
from ottla.model.clock import SystemClock
from ottla.spark.pipelines.background import run_lock
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
with run_lock(sys.argv[1], SystemClock()):
    print("held", flush=True)
    signal.sigwait([signal.SIGTERM])
"""


def test_a_run_in_the_foreground_is_found_and_no_other_begins(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoints")
    refused = pytest.raises(UserError, match=rf"already running \(process {os.getpid()}\)")
    with background.run_lock(checkpoint, CLOCK):
        run = background.find(checkpoint)
        assert run is not None
        assert (run.pid, run.is_running) == (os.getpid(), True)
        with refused, background.run_lock(checkpoint, CLOCK):
            pass
        with refused:
            background.start(checkpoint, [sys.executable, "-c", ""], CLOCK)
    run = background.find(checkpoint)
    assert run is not None
    assert not run.is_running
    with background.run_lock(checkpoint, CLOCK):
        assert not background.has_log(checkpoint), "the other never began"


def test_a_run_in_the_background_keeps_the_lock_that_it_was_started_with(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoints")
    pid = background.start(checkpoint, [sys.executable, "-c", AS_RUN_DOES, checkpoint], CLOCK)
    try:
        until_ms = CLOCK.mono_ms() + LIMIT_MS
        while not background.log_lines(checkpoint, 1) and CLOCK.mono_ms() < until_ms:
            Event().wait(0.01)
        assert background.log_lines(checkpoint, 1) == ["held"]
        with (
            pytest.raises(UserError, match=rf"already running \(process {pid}\)"),
            background.run_lock(checkpoint, CLOCK),
        ):
            pass
    finally:
        assert background.stop(checkpoint, CLOCK, Event().wait, LIMIT_MS)


def test_checkpoints_that_are_not_on_a_disk_are_not_locked() -> None:
    with (
        background.run_lock("s3://bucket/views", CLOCK),
        background.run_lock("s3://bucket/views", CLOCK),
    ):
        pass
