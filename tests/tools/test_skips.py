from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools import skips
from tools.skips import Skip
from tools.tidy import ROOT

TESTS = """
import pytest
from tests.skips import skip_without
from tools.kafka_cache import Missing


@pytest.fixture(scope="module")
def jar():
    try:
        raise Missing("Maven could not fetch server:\\n[INFO] hm\\n[ERROR] no network")
    except Missing as missing:
        pytest.skip(str(missing))


def test_one(jar): ...
def test_two(jar): ...
def test_three(): skip_without("kcat is missing")
def test_four(): pytest.skip("its API has no means for that")
def test_five(): ...
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest of its own, with tests that skip."""
    (folder / "test_them.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    inherited = {k: v for k, v in os.environ.items() if k not in ("CI", skips.FOLDER)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:cacheprovider", "-q"],
        cwd=folder,
        env={**inherited, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_skipped_tests_are_counted_with_their_reasons(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout
    want = "3 because a client, a jar or a program is missing; with CI set they would fail"
    assert [line for line in done.stdout.splitlines() if line.startswith("skipped:")] == [
        f"skipped: 4 tests, {want}",
        "skipped:     2 test_them.py: Maven could not fetch server: [ERROR] no network",
        "skipped:     1 test_them.py: kcat is missing",
        "skipped:     1 test_them.py: its API has no means for that",
    ]


def test_with_ci_set_what_is_missing_fails_and_what_cannot_be_does_not(tmp_path: Path) -> None:
    done = run(tmp_path, CI="true")
    assert done.returncode == 1, done.stdout
    assert "no network (with CI set nothing may be missing)" in " ".join(done.stdout.split())
    assert done.stdout.splitlines()[-1].startswith("1 failed, 1 passed, 1 skipped, 2 errors in")


def test_runs_leave_their_counts_for_whoever_tells_of_all(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    done = run(tmp_path, **{skips.FOLDER: str(folder)})
    assert "skipped: " not in done.stdout
    skips.keep({Skip("unit", "no io_uring", False): 5}, folder)
    found = skips.read_all(sorted(folder.glob("*.json")))
    assert found.total() == 9
    assert skips.lines(found)[-1] == "skipped:     5 unit: no io_uring"


def test_nothing_is_told_where_nothing_was_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert skips.lines(Counter()) == []
    assert skips.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "skipped: no test\n"


def test_a_suite_is_the_folder_below_tests() -> None:
    one = skips.skip("tests/interop/members/test_a.py", "Skipped: why", missing=False)
    assert one == Skip("interop", "why", False)
    assert skips.skip("tests/test_b.py", "why", missing=True).suite == "tests"


@pytest.mark.parametrize(
    ("value", "ci"), [("", False), ("false", False), ("0", False), ("true", True), ("1", True)]
)
def test_ci_is_set_or_not(value: str, ci: bool) -> None:
    assert skips.is_ci({"CI": value}) is ci
    assert not skips.is_ci({})
