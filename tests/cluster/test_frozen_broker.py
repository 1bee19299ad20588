"""Commands whose broker stops answering: connected, but silent."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.process import BrokerProcess, wait_for
from tests.raw_requests import Line, batch, create_topics, produced

ENDS_WITHIN_S = 25.0
"""Twice what the consumer may take to close, and what a busy machine adds."""


def test_a_follower_of_a_group_ends_on_sigterm_though_its_broker_is_silent(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with BrokerProcess(tmp_path) as broker, Line(broker.address) as line:
        create_topics(line, ["t"])
        produced(line, "t", batch("first"))
        command = [sys.executable, "-m", "ottla", "-b", broker.address, "consume", "t"]
        with output.open("wb") as file:
            reader = subprocess.Popen([*command, "--group", "g", "--follow"], stdout=file)
        wait_for(lambda: b"first" in output.read_bytes(), 60, "the first record")
        broker.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            reader.terminate()
            reader.wait(60)
            assert time.monotonic() - began < ENDS_WITHIN_S
        finally:
            broker.process.send_signal(signal.SIGCONT)
