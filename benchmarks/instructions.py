"""Promise: without ACLs and quotas a request costs no instruction for them.

A broker runs under valgrind's callgrind, which counts instructions, so that a busy machine does not
matter. One client sends a request at a time; what the broker executed is divided by their number.
Printed for each kind of request: without either, with an authorizer, with quotas, with both.

    python -m benchmarks.instructions [SOURCE ...]

Each SOURCE is the folder `src` of another checkout, to compare with: counted without either.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice, repeat
from pathlib import Path
from typing import Final

import ottla
from benchmarks import frames, raw
from benchmarks.contenders import OTTLA_SETTINGS
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from tools import nodes

TOPIC: Final = "counted"
WARM_UP: Final = 200
COUNTED: Final = 2_000
START_S: Final = 120
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
QUOTAS: Final[Mapping[str, float | None]] = {
    "producer_byte_rate": 1e12,
    "consumer_byte_rate": 1e12,
    "request_percentage": 1e6,
}
HERE: Final = Path(ottla.__file__).parents[1]


def main(*others: str) -> None:
    for source in map(Path, others):
        _show(f"{source}", _counts(source, {}, has_quotas=False))
    _show("neither", _counts(HERE, {}, has_quotas=False))
    _show("authorizer", _counts(HERE, AUTHORIZER, has_quotas=False))
    _show("quotas", _counts(HERE, {}, has_quotas=True))
    _show("both", _counts(HERE, AUTHORIZER, has_quotas=True))


def _show(name: str, counts: Mapping[str, float]) -> None:
    shown = ", ".join(f"{what} {count:,.0f}" for what, count in counts.items())
    print(f"{name}: instructions for {shown}", flush=True)


def _counts(source: Path, settings: Mapping[str, str], *, has_quotas: bool) -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder,
        _broker(Path(folder), source, settings) as (process, bootstrap),
    ):
        with ottla.Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=1)
            if has_quotas:
                admin.alter_client_quotas({QuotaEntity(DEFAULT): QUOTAS}).all()
        counter = _Counter(process.pid, Path(folder))
        return {what: counter.count(bootstrap, what) for what in REQUESTS}


@contextmanager
def _broker(
    folder: Path, source: Path, settings: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q"]
    command += [f"--callgrind-out-file={folder}/counts", sys.executable, "-m", "ottla", "serve"]
    command += ["--listeners", "PLAINTEXT://127.0.0.1:0", "--data-dir", f"{folder}/data"]
    for name, value in {**OTTLA_SETTINGS, **settings}.items():
        command += ["--set", f"{name}={value}"]
    output = folder / "output.txt"
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
    with output.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
    try:
        deadline = time.monotonic() + START_S
        while (address := nodes.ready_address(output.read_text())) is None:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start:\n{output.read_text()[-3000:]}")
            time.sleep(0.1)
        yield process, address
    finally:
        process.terminate()
        process.wait()


def _produces(_: socket.socket) -> Iterator[bytes]:
    batch = frames.batch(100, 1, now_ms=int(time.time() * 1000))
    return repeat(frames.produce(TOPIC, 0, batch, 1))


def _fetches(_: socket.socket) -> Iterator[bytes]:
    return repeat(frames.fetch(TOPIC, [(0, 0)], partition_max_bytes=100))


def _fetches_in_session(connection: socket.socket) -> Iterator[bytes]:
    """One record each, at the next offset, as a consumer does that keeps up."""
    first = frames.fetch(TOPIC, [(0, 0)], partition_max_bytes=100, session=frames.NEW_SESSION)
    session = frames.session_id(raw.exchange(connection, [first]))
    for number in count(1):
        yield frames.fetch(
            TOPIC, [(0, number - 1)], partition_max_bytes=100, session=(session, number)
        )


def _metadata(_: socket.socket) -> Iterator[bytes]:
    return repeat(frames.request(3, 8, struct.pack(">i", 1) + frames.string(TOPIC) + b"\0\0\0"))


REQUESTS: Final[Mapping[str, Callable[[socket.socket], Iterator[bytes]]]] = {
    "produce": _produces,
    "fetch": _fetches,
    "fetch in a session": _fetches_in_session,
    "metadata": _metadata,
}


class _Counter:
    """Counts the instructions of a broker while it answers requests."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._pid = pid
        self._folder = folder

    def count(self, bootstrap: str, what: str) -> float:
        """Instructions for one request."""
        with raw.connect(bootstrap) as connection:
            requests = REQUESTS[what](connection)
            raw.exchange(connection, islice(requests, WARM_UP))
            self._control("--instr=on")
            raw.exchange(connection, islice(requests, WARM_UP))  # valgrind translates the code
            self._control("--zero")
            raw.exchange(connection, islice(requests, COUNTED))
            self._control("--dump")
        self._control("--instr=off")
        return self._total() / COUNTED

    def _control(self, command: str) -> None:
        done = subprocess.run(
            ["callgrind_control", command, str(self._pid)], capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"callgrind_control {command}: {done.stdout}{done.stderr}")

    def _total(self) -> int:
        """Of the newest dump."""
        newest = max(self._folder.glob("counts*"), key=lambda path: path.stat().st_mtime_ns)
        for line in newest.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("summary", "totals"):
                return int(rest.split()[0])
        raise RuntimeError(f"no total in {newest}")


if __name__ == "__main__":
    main(*sys.argv[1:])
