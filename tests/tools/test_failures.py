from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import failures
from tools.tidy import ROOT

TESTS = """
from pathlib import Path
import pytest


@pytest.fixture
def broken(): raise OSError


def test_one(): ...
def test_two(): assert Path("mended").exists()
def test_three(request): Path("mended").exists() or request.getfixturevalue("broken")
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), failures.FOLDER: str(folder)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def suite(folder: Path) -> None:
    """A suite of which two tests fail until there is a file."""
    (folder / "test_them.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    result = run(folder, "-m", "pytest", "-p", "tests.failures", "-p", "no:cacheprovider", "-q")
    assert result.returncode == 1, result.stdout
    (folder / failures.SUITES).write_text("unit\n")


def test_a_few_failed_tests_decide_by_a_second_run(tmp_path: Path) -> None:
    suite(tmp_path)
    assert failures.read_all(tmp_path) == [["test_them.py::test_three", "test_them.py::test_two"]]
    again = run(tmp_path, "-m", "tools.failures", str(tmp_path))
    assert again.returncode == 1
    assert "to be mended" not in again.stdout
    (tmp_path / "mended").touch()
    again = run(tmp_path, "-m", "tools.failures", str(tmp_path))
    assert again.returncode == 0
    assert again.stdout.count("beside other suites only, to be mended: test_them.py::") == 2


def test_without_a_failed_suite_nothing_is_run(tmp_path: Path) -> None:
    again = run(tmp_path, "-m", "tools.failures", str(tmp_path))
    assert (again.returncode, again.stdout) == (0, "")


def test_a_suite_that_did_not_name_its_tests_and_many_failures_stand() -> None:
    assert "2 suites failed and 1 named" in failures.refusal(2, [["a"]])
    assert "4 tests failed" in failures.refusal(2, [["a", "b"], ["c", "d"]])
    assert failures.refusal(2, [["a", "b"], ["c"]]) == ""
