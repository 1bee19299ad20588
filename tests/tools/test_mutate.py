"""Mutants of a small project: what its tests notice is killed, the checkout stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutate import KILLED, SLOW, SURVIVED, own_tests, run, table, targets, users_tests

MODULE = """
def larger(a, b):
    return a if a > b else b

def count(items):
    total = 0
    for _ in items:
        total += 1
    return total

def until(limit):
    while limit > 0:
        limit -= 1
"""
TEST = """
from ottla.delay.sums import larger, until

def test_the_larger_of_two():
    assert larger(2, 1) == 2
    assert larger(1, 2) == 2

def test_it_ends():
    until(3)
"""
USER = "from ottla.delay.sums import count\n\ndef twice(items):\n    return 2 * count(items)\n"
USER_TEST = "from ottla.delay.user import twice\n\ndef test_twice():\n    assert twice('ab') == 4\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "src/ottla/__init__.py": "",
        "src/ottla/delay/__init__.py": "",
        "src/ottla/delay/sums.py": MODULE,
        "src/ottla/delay/user.py": USER,
        "src/ottla/delay/untested.py": "x = 1\n",
        "tests/delay/test_sums.py": TEST,
        "tests/delay/test_user.py": USER_TEST,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p no:ottla.testing.plugin"\n',
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_a_mutant_meets_its_modules_tests_and_those_of_modules_that_use_it(project: Path) -> None:
    module = "src/ottla/delay/sums.py"
    assert own_tests(project, module) == ["tests/delay/test_sums.py"]
    assert users_tests(project, module, ["delay"]) == ["tests/delay/test_user.py"]
    assert own_tests(project, "src/ottla/delay/untested.py") == []
    assert {target.module for target in targets(project, ["delay"])} == {
        module,
        "src/ottla/delay/user.py",
    }


def test_what_tests_notice_is_killed_and_what_nobody_can_see_survives(project: Path) -> None:
    before = {path: path.read_text() for path in project.rglob("*.py")}
    wanted = {
        "negate: a > b": KILLED,
        "Gt to GtE: a > b": SURVIVED,  # of two that are equal either will do
        "drop: total += 1": KILLED,  # by the test of who uses it
        "drop: limit -= 1": SLOW,
    }
    chosen = {
        f"{target.mutant.kind}: {target.mutant.text}": target
        for target in targets(project, ["delay"])
    }
    todo = [chosen[name] for name in wanted]
    verdicts = dict(run(project, todo, ["delay"], jobs=2, timeout_s=20.0))
    assert {name: verdicts[chosen[name]] for name in wanted} == wanted
    assert {path: path.read_text() for path in before} == before
    assert table(list(verdicts.items()))[-1] == "| delay | 4 | 3 | 1 |"
