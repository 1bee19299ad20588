from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.kafka.main import run
from ottla.cli.kafka.zookeeper_start import MAIN, command, jars
from tests.skips import skip_without
from tools.nodes import free_ports

WAIT_S = 60.0


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    if shutil.which("java") is None:
        skip_without("java is missing; as root: apt-get install default-jdk-headless")
    [port] = free_ports(1)
    file = tmp_path / "zookeeper.properties"
    # What a server of an ensemble has, too: docs/cli.md explains each line.
    file.write_text(
        f"tickTime=2000\ndataDir={tmp_path / 'zk'}\nclientPort={port}\ninitLimit=20\nsyncLimit=5\n"
    )
    yield file, port


@pytest.mark.spec("TOOL-01", "TOOL-19")
def test_a_zookeeper_serves_what_its_properties_say(settings: tuple[Path, int]) -> None:
    file, port = settings
    words = [sys.executable, "-m", "ottla.cli.kafka.main", "zookeeper-server-start.sh", str(file)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        end = time.monotonic() + WAIT_S
        while not answers(port):
            assert server.poll() is None, "it ended"
            assert time.monotonic() < end, "it does not answer"
        server.send_signal(signal.SIGTERM)


def answers(port: int) -> bool:
    """Whether a server says something to `srvr`, which it answers unless told otherwise."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
            line.sendall(b"srvr")
            return b"Zookeeper version" in line.recv(4096)
    except OSError:
        return False


def test_the_server_is_in_the_jars_of_pyspark() -> None:
    assert list(jars().glob("zookeeper-3*.jar"))
    words = command(Path("zoo.properties"))
    assert words[-2:] == [MAIN, "zoo.properties"]


def test_a_file_that_is_not_there_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("zookeeper-server-start.sh", [str(tmp_path / "none")]) == 1
    assert "there is no such file" in capsys.readouterr().err
