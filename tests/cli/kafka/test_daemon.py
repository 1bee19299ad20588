from __future__ import annotations

import os
import sys
from pathlib import Path

from ottla.cli.kafka.daemon import start


def test_a_program_has_a_session_and_a_log_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "out"
    program = "import os, sys; print(os.getsid(0), repr(sys.stdin.read())); sys.exit('said')"
    for _ in range(2):
        pid = start([sys.executable, "-c", program], log)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 1
    assert f"{pid} ''\nsaid\n" in log.read_text()
    assert log.read_text().count("said") == 2, "it is appended to"
