"""The process around a broker: the ready line, signals, exit codes."""

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

from ottla.log.directories.directory import CLEAN_SHUTDOWN
from tests.raw_requests import (
    PRODUCE,
    Line,
    batch,
    create_topics,
    fetched,
    produce_fields,
    produced,
)

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys; from ottla.broker.lifecycle import run; sys.exit(run(eval(sys.argv[1])))"
READY = re.compile(r"broker 0 ready on PLAINTEXT://(127\.0\.0\.1:\d+), data in (.+)\n")


@contextmanager
def process(data: Path, **settings: str) -> Iterator[subprocess.Popen[str]]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(data), **named}
    started = subprocess.Popen(
        [sys.executable, "-c", RUN, repr(settings)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with started:
        yield started
        started.kill()


def ready(broker: subprocess.Popen[str]) -> str:
    assert broker.stdout is not None
    line = broker.stdout.readline()
    match = READY.fullmatch(line)
    assert match is not None, line or broker.communicate()[1]
    return match[1]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_one_line_says_it_is_ready_and_a_signal_ends_it_cleanly(
    tmp_path: Path, how: signal.Signals
) -> None:
    with process(tmp_path) as broker:
        servers = ready(broker)
        with Line(servers) as line:
            create_topics(line, ["t"])
            assert produced(line, "t", batch("a")).base_offset == 0
        broker.send_signal(how)
        out, _ = broker.communicate(timeout=30)
        assert (broker.returncode, out) == (0, "")
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    with process(tmp_path) as again, Line(ready(again)) as line:
        assert fetched(line, "t").high_watermark == 1


def test_a_mistake_is_for_the_command_line_to_say(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with process(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}") as broker:
            out, err = broker.communicate(timeout=30)
            assert out == ""
            assert "UserError: listeners: " in err
            assert err.count("Traceback") == 1


def test_a_broker_whose_last_disk_fails_stops_with_an_error(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with process(data) as broker, Line(ready(broker)) as line:
        create_topics(line, ["t"], segment_bytes=str(1 << 20))
        (data / "t-0").rename(tmp_path / "away")
        for _ in range(2):  # the second one needs a new segment
            line.send_request(PRODUCE, 9, **produce_fields("t", batch("x" * 600_000)))
        _, err = broker.communicate(timeout=30)
        assert broker.returncode == 1
        [line_said] = [line for line in err.splitlines() if " INFO " not in line]
        assert "CRITICAL ottla: broker stopped: every log directory failed: " in line_said
        assert f"{data} (No such file or directory: {data / 't-0'}" in line_said
    assert not (data / CLEAN_SHUTDOWN).exists()


GROWS = """
import gc
from ottla.broker.lifecycle import GC_THRESHOLDS
gc.collect()
gc.freeze()
gc.set_threshold(*GC_THRESHOLDS)
seen = []
def looked(phase, info):
    if phase == "start":
        seen.append(sum(len(gc.get_objects(one)) for one in range(info["generation"] + 1)))
gc.callbacks.append(looked)
kept = [[number] for number in range(1_000_000)]
print(len(seen), max(seen))
"""


def test_metadata_that_are_lost_while_it_starts_stop_it_with_one_line() -> None:
    program = """
import sys
from ottla.broker import lifecycle
from ottla.store.port import StoreUnavailable

class Unlucky:
    def __init__(self, settings, environment): pass
    async def start(self): raise StoreUnavailable(5, "no reply", "/controller")

lifecycle.App = Unlucky
sys.exit(lifecycle.run({}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert (
        "broker stopped: metadata store unavailable: [Errno 5] no reply: '/controller'"
        in ran.stderr
    )


def test_a_broker_that_grows_never_stops_to_look_through_many_objects() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", GROWS],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    times, most = map(int, ran.stdout.split())
    assert times > 50, "it does look"
    assert most < 25_000


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(("umask", "file_mode"), [(None, 0o600), ("027", 0o640)])
def test_only_its_owner_reads_the_data_unless_told_otherwise(
    tmp_path: Path, umask: str | None, file_mode: int
) -> None:
    data = tmp_path / "data"
    with process(data, **({} if umask is None else {"log_dirs_umask": umask})) as broker:
        with Line(ready(broker)) as line:
            create_topics(line, ["t"])
            produced(line, "t", batch("a"))
        broker.send_signal(signal.SIGTERM)
        broker.communicate(timeout=30)
    found = {path: path.stat().st_mode & 0o777 for path in [data, *data.rglob("*")]}
    assert len(found) > 5
    for path, mode in found.items():
        executable = 0o111 & ~int(umask or "077", 8) if path.is_dir() else 0
        assert mode == file_mode | executable, f"{path}: {mode:o}"
