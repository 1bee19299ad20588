from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from ottla.cli.kafka.daemon import start


@pytest.fixture(autouse=True)
def buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python as it comes: it keeps back what is written to a file."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


def test_a_program_has_a_session_and_a_log_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "out"
    program = "import os, sys; print(os.getsid(0), repr(sys.stdin.read())); sys.exit('said')"
    for _ in range(2):
        pid = start([sys.executable, "-c", program], log)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 1
    assert f"{pid} ''\nsaid\n" in log.read_text()
    assert log.read_text().count("said") == 2, "it is appended to"


def test_what_a_program_says_is_in_its_log_while_it_still_runs(tmp_path: Path) -> None:
    log = tmp_path / "out"
    pid = start([sys.executable, "-c", "import time; print('ready'); time.sleep(600)"], log)
    try:
        deadline = time.monotonic() + 60
        while "ready\n" not in log.read_text():
            assert time.monotonic() < deadline, "the line is kept back"
            time.sleep(0.02)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
