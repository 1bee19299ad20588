"""A pytest plugin: a test marked `own_process` runs in a fork of the test process.

Owns: the fork, and the way of its failure back.

A test that takes the process's last descriptor cannot share them with the brokers of other tests,
whose threads open and close files at any time. In a fork there is the test's thread alone.
"""

from __future__ import annotations

import gc
import os
import signal
import traceback
from typing import Final

import pytest

OWN_PROCESS: Final = "own_process"
PARENT: Final = os.getpid()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{OWN_PROCESS}: runs in a fork, without other threads")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a marked test in a fork; True tells pytest that the test has been called."""
    if os.getpid() != PARENT or pyfuncitem.get_closest_marker(OWN_PROCESS) is None:
        return None
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        gc.freeze()  # what the parent left to be collected frees no descriptor here
        failure = ""
        try:
            pyfuncitem.ihook.pytest_pyfunc_call(pyfuncitem=pyfuncitem)
        except BaseException:
            failure = traceback.format_exc() or "failed without a traceback"
        os.write(writing, failure.encode()[-60_000:])  # fits the pipe
        os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            failure = pipe.read().decode(errors="replace")
    except BaseException:  # a timeout, or Ctrl-C
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    assert status == 0, f"the test's process ended with status {status}"
    if failure:
        pytest.fail(failure, pytrace=False)
    return True
