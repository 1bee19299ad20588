"""Runs in the background: any command will do here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from ottla.model.clock import SystemClock
from ottla.model.errors import UserError
from ottla.spark.pipelines import background

LIMIT_MS = 60_000
PROGRAM = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("ready", flush=True)
signal.sigwait([signal.SIGTERM])
print("bye")
"""
CLOCK = SystemClock()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[str]:
    checkpoint = str(tmp_path / "checkpoints")
    background.start(checkpoint, [sys.executable, "-c", PROGRAM], CLOCK)
    until_ms = CLOCK.mono_ms() + LIMIT_MS
    while background.log_lines(checkpoint, 1) != ["ready"] and CLOCK.mono_ms() < until_ms:
        Event().wait(0.01)
    yield checkpoint
    background.stop(checkpoint, CLOCK, Event().wait, LIMIT_MS)


def test_a_run_is_found_followed_and_stopped_by_its_checkpoints(running: str) -> None:
    found = background.find(running)
    assert found is not None
    assert found.is_running
    followed = background.follow_log(
        running, lambda _: background.stop(running, CLOCK, Event().wait, LIMIT_MS)
    )
    assert "".join(followed) == "bye\n"
    found = background.find(running)
    assert found is not None
    assert not found.is_running
    assert background.log_lines(running, 1) == ["bye"]
    assert not background.stop(running, CLOCK, Event().wait, LIMIT_MS), "it has ended"


def test_a_second_run_of_the_same_checkpoints_is_refused(running: str) -> None:
    with pytest.raises(UserError, match=r"checkpoints: already running \(process \d+\)"):
        background.start(running, [sys.executable, "-c", ""], CLOCK)


def test_what_never_ran_is_not_found_and_needs_a_local_disk(tmp_path: Path) -> None:
    assert background.find(str(tmp_path)) is None
    assert background.log_lines(str(tmp_path), 5) == []
    with pytest.raises(UserError, match="needs a folder on a local disk"):
        background.find("s3://bucket/checkpoints")


def test_the_end_of_a_large_file_begins_with_a_whole_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first line\nsecond\nthird\n")
    assert background.tail(tmp_path / "log", 10) == "third\n"
