"""Promises of `ottla zookeeper start`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.cli import main
from ottla.cli.zookeeper.ensemble import properties
from tests.spark.quick_jvm import QUICK_JAVA
from tests.store.zookeeper_server import find_java
from tools.nodes import free_ports


@contextmanager
def started(data: Path, port: int, servers: int) -> Iterator[subprocess.Popen[str]]:
    find_java()
    words = [sys.executable, "-m", "ottla", "zookeeper", "start", "--data", str(data)]
    words += ["--port", str(port), "--servers", str(servers)]
    environment = {**os.environ, **QUICK_JAVA}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stdout is not None
        process.stdout.close()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def test_three_servers_say_when_they_are_ready_and_form_one_ensemble(tmp_path: Path) -> None:
    ports = _free_row(3)
    connect = ",".join(f"127.0.0.1:{port}" for port in ports)
    with started(tmp_path, ports[0], 3) as process:
        *ready, last = lines(process, 4)
        assert last == f"brokers connect with zookeeper.connect={connect}"
        assert sorted(line.split(" ready on ")[0] for line in ready) == [
            f"ZooKeeper server {number}" for number in (1, 2, 3)
        ]
        assert sum("(leader)" in line for line in ready) == 1
        client = KazooClient(hosts=connect)
        client.start()
        client.create("/kept", b"1")
        client.stop()
        client.close()
    with started(tmp_path, ports[0], 3) as process:
        lines(process, 4)
        client = KazooClient(hosts=connect)
        client.start()
        assert client.get("/kept")[0] == b"1"
        client.stop()
        client.close()


def test_a_port_in_use_is_named_before_anything_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find_java()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["zookeeper", "start", "--data", str(tmp_path), "--port", str(port)]
        assert main.run(words) == 2
    assert f"--port {port}: cannot listen on" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_java_the_error_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [port] = free_ports(1)
    assert main.run(["zookeeper", "start", "--data", str(tmp_path), "--port", str(port)]) == 2
    assert "ZooKeeper needs Java" in capsys.readouterr().err


def test_one_server_alone_is_no_ensemble() -> None:
    text = properties(Path("/data"), 2181, "")
    assert "clientPort=2181\n" in text
    assert "server." not in text


def _free_row(count: int) -> list[int]:
    """Free ports next to each other."""
    for first in free_ports(20):
        row = list(range(first, first + count))
        try:
            for port in row:
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return row
    raise AssertionError("no free ports next to each other")
