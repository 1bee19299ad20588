from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ottla
from ottla.cli.gateway import parse_listen
from ottla.model.errors import UserError
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.gateway.running_gateway import JSON, Client


@contextmanager
def program(*words: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that serves until it is told to stop, and its ready line."""
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            line = process.stdout.readline()
            assert " ready on " in line, process.stderr.read()
            yield process, line.split(" ready on ")[1].split(",")[0].strip()
        finally:
            process.kill()


@pytest.mark.spec("APP-20")
def test_the_gateway_serves_a_broker_with_default_settings(tmp_path: Path) -> None:
    serve = ("serve", "--listeners", "PLAINTEXT://127.0.0.1:0", "--data-dir", str(tmp_path))
    with program(*serve) as (_, listener):
        servers = listener.removeprefix("PLAINTEXT://")
        words = ("gateway", "--listen", "127.0.0.1:0")
        with program(*words, OTTLA_BOOTSTRAP_SERVER=servers) as (gateway, url):
            client = Client(url)
            body = {"records": [{"key": "a", "value": {"n": 1}}]}
            reply = client.post("/topics/orders", body, JSON)
            assert reply.json["offsets"][0]["offset"] == 0, "the broker creates topics"
            path = client.instance("billing", format="json")
            assert client.post(f"{path}/subscription", {"topics": ["orders"]}).status == 204
            rows = []
            for _ in range(10):
                rows += client.get(f"{path}/records?timeout=5000").json
                if rows:
                    break
            assert [(row["key"], row["value"]) for row in rows] == [("a", {"n": 1})]
            with ottla.Admin(bootstrap_servers=servers) as admin:
                assert len(admin.describe_group("billing").members) == 1
                gateway.send_signal(signal.SIGTERM)
                assert gateway.wait(30) == 0
                assert admin.describe_group("billing").members == ()
            _, errors = gateway.communicate()
            assert "Traceback" not in errors
            assert "warning" not in errors.lower()


def test_an_address_that_others_reach_is_warned_about_in_one_line(cli_broker: Broker) -> None:
    words = ("-b", cli_broker.bootstrap_servers, "--listen", "0.0.0.0:0")
    with program("gateway", *words) as (gateway, url):
        port = int(url.rpartition(":")[2])
        assert Client(f"http://127.0.0.1:{port}").get("/brokers").status == 200
        gateway.send_signal(signal.SIGINT)
        _, errors = gateway.communicate(timeout=30)
    assert gateway.returncode == 0
    assert re.findall(r"^ottla: warning: no login: .*0\.0\.0\.0", errors, re.MULTILINE)
    assert len(errors.splitlines()) == 1


def test_mistakes_are_said_in_a_line(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run("gateway", "--listen", f"127.0.0.1:{port}").failed(1, str(port), "in use")
    run("gateway", "--listen", "8082").failed(2, "--listen '8082': expected HOST:PORT")
    run("gateway", "--certificate", tmp_path / "none").failed(2, "--private-key", "give both")
    files = ("--certificate", tmp_path / "none", "--private-key", tmp_path / "none")
    run("gateway", *files).failed(2, "No such file")
    run("gateway", "--set", "lingr.ms=1").failed(2, "lingr.ms", "linger.ms")
    run("gateway", "--set", "linger.ms=x").failed(2, "linger.ms")
    run("gateway", "--max-connections", "0").failed(2, "--max-connections")
    run("gateway", "-b", "127.0.0.1:1").failed(1, "cannot reach a broker at 127.0.0.1:1")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:0", ("localhost", 0)),
        ("[::1]:8082", ("::1", 8082)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize("text", ["", ":8082", "host", "host:", "host:x", "host:65536", "[]:1"])
def test_half_an_address_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected HOST:PORT"):
        parse_listen(text)
