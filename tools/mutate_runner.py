"""Runs tests over and over, each time in a fork of a process that has loaded pytest already.

Owns: the forks. Reads pytest's arguments from stdin, a line with tabs for each run, and writes its
exit code, or that the run did not end in time. Never: imports anything of the project before a
fork: each run shall load what the files say then.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import Final

import hypothesis
import hypothesis.stateful
import pytest

TIMED_OUT: Final = "timed out"
LOADED: Final = (hypothesis, hypothesis.stateful, pytest)


def run_one(arguments: Sequence[str], timeout_s: float) -> str:
    """pytest's exit code, as a text."""
    ended, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        code = 3
        try:
            code = int(pytest.main(list(arguments)))
        finally:
            os._exit(code)
    os.close(end)
    ready, _, _ = select.select([ended], [], [], timeout_s)
    os.close(ended)
    if not ready:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return str(os.waitstatus_to_exitcode(status)) if ready else TIMED_OUT


def main(timeout_s: float) -> None:
    for line in sys.stdin:
        print(run_one(line.rstrip("\n").split("\t"), timeout_s), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
