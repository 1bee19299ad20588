from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.cli.kafka.main import run
from ottla.cli.kafka.server_stop import Process, brokers, processes

RUNNING = [
    Process(1, ("/usr/bin/python3", "/usr/bin/ottla", "serve", "/etc/one.properties")),
    Process(2, ("python", "-m", "ottla", "serve", "--data-dir", "x")),
    Process(3, ("python", "-m", "ottla", "topics", "list")),
    Process(4, ("vim", "serve")),
    Process(5, ("python", "-m", "ottla.cli.main", "serve", "/etc/two.properties")),
    Process(
        6,
        ("python", "-m", "ottla.cli.kafka.main", "kafka-server-start.sh", "four.properties"),
        Path("/etc"),
    ),
    Process(7, ("python", "-m", "ottla.cli.kafka.main", "kafka-server-stop.sh")),
]


@pytest.mark.spec("TOOL-03")
def test_every_broker_is_meant_or_the_one_of_a_file() -> None:
    assert [one.id for one in brokers(RUNNING, None)] == [1, 2, 5, 6]
    assert [one.id for one in brokers(RUNNING, Path("/etc/four.properties"))] == [6]
    assert [one.id for one in brokers(RUNNING, Path("/etc/two.properties"))] == [5]
    assert list(brokers(RUNNING, Path("/etc/three.properties"))) == []


def test_this_users_processes_are_seen() -> None:
    assert os.getpid() in {process.id for process in processes()}


def test_nothing_to_stop_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("kafka-server-stop.sh", [str(tmp_path / "none.properties")]) == 1
    assert capsys.readouterr().err == "No kafka server to stop\n"
