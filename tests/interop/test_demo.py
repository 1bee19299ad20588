from __future__ import annotations

import pytest

from tools import demo


def test_make_run_shows_two_clients_writing_and_reading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert demo.main() == 0
    shown = capsys.readouterr().out
    assert "ready on PLAINTEXT://127.0.0.1:" in shown
    assert all(client in shown for client in ("confluent-kafka", "kafka-python"))
    assert "Every record was written and read." in shown
