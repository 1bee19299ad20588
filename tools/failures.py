"""Failed tests of suites that ran side by side: a few are run once more, by themselves.

Owns: the files in the folder that `TEST_FAILURES` names, and whether a second run may decide.

    python -m tools.failures FOLDER    runs them again; fails unless every one of them passes

Three suites on two cores delay each other, and a test that bounds real time may fail for it. Such
a test is a fault to mend, so it is named in the last lines; but it does not say that the change is
wrong. More than a few failures, or a suite that ended in another way, are not run again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Final

FOLDER: Final = "TEST_FAILURES"
PREFIX: Final = "failed:"
AT_MOST: Final = 3
SUITES: Final = "suites"
"""The file that the Makefile writes: a line for each suite with failed tests."""


def keep(node_ids: Set[str], folder: Path) -> None:
    """Write the failed tests of this run of pytest to the folder."""
    if node_ids:
        (folder / f"{os.getpid()}.json").write_text(json.dumps(sorted(node_ids)))


def read_all(folder: Path) -> list[list[str]]:
    """The failed tests of every run."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def refusal(suites: int, runs: Sequence[Sequence[str]]) -> str:
    """Why failures stand as they are; empty if their tests may be run again."""
    tests = sum(len(run) for run in runs)
    if len(runs) != suites:
        return f"{suites} suites failed and {len(runs)} named their tests"
    if tests > AT_MOST:
        return f"{tests} tests failed; up to {AT_MOST} are run again by themselves"
    return ""


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0])
    marks = folder / SUITES
    suites = len(marks.read_text().split()) if marks.exists() else 0
    if not suites:
        return 0
    runs = read_all(folder)
    if reason := refusal(suites, runs):
        print(f"{PREFIX} {reason}")
        return 1
    tests = [node_id for run in runs for node_id in run]
    print(f"{PREFIX} {len(tests)} beside other suites; running by themselves:", *tests, flush=True)
    environment = {key: text for key, text in os.environ.items() if key != FOLDER}
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "300", *tests]
    if subprocess.run(command, env=environment, check=False).returncode:
        return 1
    for test in tests:
        print(f"{PREFIX} beside other suites only, to be mended: {test}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
