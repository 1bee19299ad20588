"""Settings and command lines that are wrong: exit code 2, one line that names the key.

Before a port is bound or a directory is made, so that a mistake leaves nothing behind.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.raw_requests import batch

WRONG: Final[dict[str, tuple[list[str], str]]] = {
    "not a number": (["num.partitions=many"], "num.partitions"),
    "a fraction": (["num.partitions=1.5"], "num.partitions"),
    "negative": (["queued.max.requests=-1"], "queued.max.requests"),
    "zero": (["num.partitions=0"], "num.partitions"),
    "overflow": (["log.segment.bytes=99999999999"], "log.segment.bytes"),
    "overflow of a long": (["log.retention.ms=99999999999999999999"], "log.retention.ms"),
    "too small": (["log.segment.bytes=10"], "log.segment.bytes"),
    "not a boolean": (["auto.create.topics.enable=perhaps"], "auto.create.topics.enable"),
    "not one of": (["compression.type=brotli"], "compression.type"),
    "an unknown policy": (["log.cleanup.policy=shred"], "log.cleanup.policy"),
    "an unknown flush policy": (["flush.before.ack=sometimes"], "flush.before.ack"),
    "a negative broker": (["broker.id=-5"], "broker.id"),
    "a listener without a port": (["listeners=PLAINTEXT://127.0.0.1"], "listeners"),
    "a listener that is none": (["listeners=nonsense"], "listeners"),
    "a port too large": (["listeners=PLAINTEXT://127.0.0.1:70000"], "listeners"),
    "the same port twice": (
        [
            "listeners=A://127.0.0.1:19092,B://127.0.0.1:19092",
            "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
            "inter.broker.listener.name=A",
        ],
        "listeners",
    ),
    "the same name twice": (
        ["listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"],
        "listeners",
    ),
    "a listener without a protocol": (["listeners=CLIENTS://127.0.0.1:0"], "CLIENTS"),
    "advertised 0.0.0.0": (
        ["advertised.listeners=PLAINTEXT://0.0.0.0:9092"],
        "advertised.listeners",
    ),
    "an undefined inter-broker listener": (
        ["inter.broker.listener.name=NOWHERE"],
        "inter.broker.listener.name",
    ),
    "no key": (["=5"], "="),
    "no value": (["num.partitions"], "num.partitions"),
}


def serve(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `ottla serve` until it ends of itself."""
    command = [sys.executable, "-m", "ottla", "serve", "--data-dir", str(folder / "data")]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=20
    )


def sets(settings: list[str]) -> list[str]:
    if not any(one.startswith("listeners=") for one in settings):
        settings = ["listeners=PLAINTEXT://127.0.0.1:0", *settings]
    return [word for one in settings for word in ("--set", one)]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_setting_is_named_and_nothing_is_begun(tmp_path: Path, wrong: str) -> None:
    settings, key = WRONG[wrong]
    done = serve(tmp_path, *sets(settings))
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("ottla: ")
    assert done.stderr.count("\n") == 1
    assert key in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_wrong_line_of_a_file_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=0\nnum.partitions=many\n")
    done = serve(tmp_path, str(file))
    assert done.returncode == 2
    assert "num.partitions" in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = serve(tmp_path, str(tmp_path / "nowhere.properties"))
    assert done.returncode == 2
    assert "nowhere.properties" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_key_is_a_warning_with_the_nearest_known_name(tmp_path: Path) -> None:
    """Then a taken port stops it, so that this test ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"listeners=PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        done = serve(tmp_path, *sets([listener, "num.partition=3"]))
    warning = done.stderr.splitlines()[0]
    assert "num.partition" in warning
    assert "num.partitions" in warning


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve(tmp_path, "--listeners", f"PLAINTEXT://127.0.0.1:{port}")
    assert done.returncode == 2
    assert str(port) in done.stderr
    assert done.stderr.count("\n") == 1


def test_another_broker_id_than_the_directorys_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=0\nbroker.id=3\n")
    done = serve(tmp_path, *sets(["broker.id=4"]))
    assert done.returncode == 2
    assert "broker.id 4" in done.stderr
    assert "says 3" in done.stderr


@pytest.mark.parametrize("text", ["version=9\n", "version=0\nbroker.id=x\n", "version=1\n"])
def test_a_meta_properties_that_cannot_be_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text(text)
    done = serve(tmp_path, *sets([]))
    assert done.returncode == 2
    assert "meta.properties" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_store_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ottla-store.sqlite").write_bytes(b"garbage" * 1000)
    done = serve(tmp_path, *sets([]))
    assert done.returncode == 2
    assert "ottla-store.sqlite" in done.stderr
    assert done.stderr.count("\n") == 1


def test_dumping_garbage_says_where_it_begins_and_exits_1(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    whole = batch("one")
    path.write_bytes(whole + b"no batch at all, nowhere in this file" * 10)
    command = [sys.executable, "-m", "ottla", "log", "dump", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 1
    assert f"byte {len(whole)}: " in done.stderr
    assert "Traceback" not in done.stderr
