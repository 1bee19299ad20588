"""kio does not bring Hypothesis along."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

import pytest

from ottla.model.kio_import import HYPOTHESIS, Denial

AFTER = "import sys, ottla.model.errors; print('hypothesis' in sys.modules)"
BEFORE = f"import hypothesis; {AFTER}; import hypothesis.strategies as st; from kio.static"
BEFORE += ".primitive import i8; print(-128 <= st.from_type(i8).example() < 128)"
LATER = f"{AFTER}; import hypothesis.strategies; print(hypothesis.strategies.__name__)"


def lines(program: str) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_process_that_imports_us_does_not_import_hypothesis() -> None:
    assert lines(AFTER) == ["False"]


def test_a_process_that_has_hypothesis_keeps_the_strategies_of_kio() -> None:
    assert lines(BEFORE) == ["True", "True"]


def test_hypothesis_can_be_imported_afterwards() -> None:
    assert lines(LATER) == ["False", "hypothesis.strategies"]


def test_another_thread_is_denied_nothing() -> None:
    denial = Denial()
    with pytest.raises(ModuleNotFoundError, match="hypothesis"):
        denial.find_spec(HYPOTHESIS, None)
    failures: list[BaseException] = []

    def elsewhere() -> None:
        try:
            denial.find_spec(HYPOTHESIS, None)
        except BaseException as failure:
            failures.append(failure)

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert failures == []
