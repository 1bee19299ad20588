"""Skipped tests are counted with their reasons; what the machine lacks fails a run of CI.

A test skips for want of something when it does so because of `tools.kafka_cache.Missing`: a
client, a jar or a program that is not there. Others skip for what a client or a kernel cannot do,
anywhere.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tools import skips
from tools.kafka_cache import Missing

LACKING = pytest.StashKey[set[str]]()


def skip_without(what: str) -> NoReturn:
    """Skip a test because the machine lacks something: say what, and how to get it."""
    raise pytest.skip.Exception(what) from Missing(what)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LACKING] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.outcome == "skipped" and call.excinfo is not None and lacks(call.excinfo.value):
        if skips.is_ci(os.environ):
            report.outcome = "failed"
            report.longrepr = f"{call.excinfo.value} (with CI set nothing may be missing)"
        else:
            item.config.stash[LACKING].add(report.nodeid)
    return report


def lacks(skipped: BaseException) -> bool:
    """Whether a test was skipped because something is missing."""
    return isinstance(skipped, pytest.skip.Exception) and (
        isinstance(skipped.__cause__, Missing) or isinstance(skipped.__context__, Missing)
    )


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counted: Counter[skips.Skip] = Counter()
    lacking = config.stash[LACKING]
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        file = report.nodeid.partition("::")[0]
        counted[skips.skip(file, reason, missing=report.nodeid in lacking)] += 1
    folder = os.environ.get(skips.FOLDER)
    if folder:  # `make test` tells of all suites together, at its end
        skips.keep(counted, Path(folder))
    else:
        for line in skips.lines(counted):
            terminalreporter.write_line(line)
