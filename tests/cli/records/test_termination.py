from __future__ import annotations

import os
import signal

import pytest

from ottla.cli.records.termination import interrupted_by_sigterm


def test_sigterm_interrupts_once_and_the_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interrupted_by_sigterm():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # leaving is not cut short
    assert signal.getsignal(signal.SIGTERM) == before
