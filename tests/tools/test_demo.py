from __future__ import annotations

import subprocess

import pytest

from tools.demo.seconds import Mistake, main, seconds_of
from tools.tidy import ROOT


@pytest.mark.parametrize(
    ("given", "seconds"), [([], None), ([""], None), (["60"], 60.0), (["0"], 0.0), (["1.5"], 1.5)]
)
def test_seconds_are_a_number_or_none(given: list[str], seconds: float | None) -> None:
    assert seconds_of(given) == seconds
    assert main(given) == 0


@pytest.mark.parametrize("given", ["abc", "-1", "nan", "inf", "1 2"])
def test_what_is_no_number_of_seconds_is_said(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Mistake):
        seconds_of([given])
    assert main([given]) == 2
    said = capsys.readouterr().err
    assert said == f"demo: SECONDS={given}: expected a number of seconds, such as SECONDS=60\n"


def test_make_run_says_so_before_it_makes_an_environment() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "run", "SECONDS=abc"], cwd=ROOT, capture_output=True, text=True
    )
    lines = [line for line in done.stdout.splitlines() if " -m tools." in line]
    assert lines[0].endswith("-m tools.demo.seconds 'abc'")
    assert "tools.environment" in lines[1]
