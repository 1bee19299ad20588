from __future__ import annotations

import subprocess
import sys


def test_make_run_shows_two_clients_writing_and_reading() -> None:
    """In a process of its own, as `make run` has it: kafka-python leaves a socket behind."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ready on PLAINTEXT://127.0.0.1:" in done.stdout
    assert all(client in done.stdout for client in ("confluent-kafka", "kafka-python"))
    assert "Every record was written and read." in done.stdout
