"""A pytest plugin: names the tests that failed to `make test`, which runs a few of them again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools import failures


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    folder = os.environ.get(failures.FOLDER)
    if folder:
        reports = [
            *terminalreporter.getreports("failed"),
            *terminalreporter.getreports("error"),
        ]
        failures.keep({report.nodeid for report in reports}, Path(folder))
