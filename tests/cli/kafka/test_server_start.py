"""A broker as Kafka's scripts start and stop it: in the background, by its properties file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.cli.kafka.main import run
from ottla.cli.kafka.server_start import LOG
from ottla.cli.kafka.server_stop import brokers, processes
from tools.nodes import ready_address

WAIT_S = 30.0


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n")
    yield file
    for left in brokers(processes(), file):
        os.kill(left.id, signal.SIGKILL)


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, what


@pytest.mark.spec("TOOL-02", "TOOL-03")
def test_a_broker_runs_in_the_background_until_it_is_stopped(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    monkeypatch.setenv("LOG_DIR", str(logs))
    words = ["-daemon", str(settings), "--override", "broker.id=7"]
    assert run("kafka-server-start.sh", words) == 0
    until(lambda: ready_address((logs / LOG).read_text()) is not None, "it is not ready")
    assert "broker 7 ready" in (logs / LOG).read_text()
    [process] = brokers(processes(), settings)
    assert run("kafka-server-stop.sh", [str(settings)]) == 0
    os.waitpid(process.id, 0)
    assert list(brokers(processes(), settings)) == []
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists(), "it was stopped gracefully"
    assert run("kafka-server-stop.sh", [str(settings)]) == 1


def test_a_file_is_wanted_and_a_bad_one_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("kafka-server-start.sh", []) == 1
    assert "server.properties" in capsys.readouterr().err
    assert run("kafka-server-start.sh", [str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err
    bad = tmp_path / "bad.properties"
    bad.write_text("log.segment.bytes=many\n")
    assert run("kafka-server-start.sh", [str(bad)]) == 1
    assert "log.segment.bytes" in capsys.readouterr().err
