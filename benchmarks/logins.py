"""Promise: clients that have not logged in cannot hold up those that have.

- 2,000 connections that begin a TLS handshake and never finish it, opened again whenever the broker
  closes them: the p99 of a small request of others stays below twice what it was. Once with half
  of the first message, for which the broker computes nothing yet, once with all of it.
- 500 clients that log in at once by TLS and SCRAM are served without a piece of more than 50 ms on
  the event loop: handshakes are computed on threads. For that the broker runs in a thread of this
  process, as in `benchmarks.stalls`; another connection times ApiVersions meanwhile.

    python -m benchmarks.logins [--rounds N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import ottla
from benchmarks import frames
from benchmarks.contenders import OTTLA_SETTINGS, Contender, rss_mb
from benchmarks.raw import connect, exchange, percentiles_ms
from benchmarks.stalls import Pieces, measured
from ottla.broker.lifecycle import GC_THRESHOLDS
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.client.broker_connection import BrokerConnection, ClientSecurity
from ottla.client.cluster_view import Node
from ottla.config.client import AdminConfig
from ottla.model.clock import SystemClock
from ottla.testing import Broker
from tools import nodes

SILENT: Final = 2_000
STORM: Final = 500
RATIO_MAX: Final = 2.0
STALL_MAX_MS: Final = 50.0
MEASURED_S: Final = 13
"""Longer than the broker waits for a handshake: it closes connections and accepts them again."""
PROBE_S: Final = 0.002
USER: Final = "alice"
PASSWORD: Final = "secret of alice"
MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4096
"""What a client computes for each login; with more of them clients would be measured."""


# Connections that never finish a handshake


class Silent:
    """So many connections, each of which sends `hello` and no more; closed ones come again."""

    def __init__(self, address: str, count: int, hello: bytes) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._hello = hello
        self._poller = select.epoll()
        self._open: dict[int, socket.socket] = {}
        self.reopened = 0
        for _ in range(count):
            self._connect()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._reopen)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for connection in self._open.values():
            connection.close()

    def _connect(self) -> None:
        connection = socket.create_connection(self._address)
        connection.sendall(self._hello)
        self._open[connection.fileno()] = connection
        self._poller.register(connection, select.EPOLLIN)

    def _reopen(self) -> None:
        while not self._ended.is_set():
            for descriptor, _ in self._poller.poll(0.05):
                with suppress(ConnectionError):
                    if self._open[descriptor].recv(1 << 16):
                        continue  # the broker's part of the handshake
                self._poller.unregister(descriptor)
                self._open.pop(descriptor).close()
                with suppress(OSError):
                    self._connect()
                    self.reopened += 1


def whole_hello() -> bytes:
    """What OpenSSL sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def silent_handshakes(folder: Path, certificates: Path, rounds: int) -> bool:
    """Whether the p99 of others stayed below twice."""
    hello = whole_hello()
    sent = {"half a hello": hello[: len(hello) // 2], "a whole hello": hello}
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the broker inherits it
    [port] = nodes.free_ports(1)
    settings = {
        **OTTLA_SETTINGS,
        **security(certificates),
        "socket.listen.backlog.size": "4096",
    }
    with nodes.ottla(folder, settings, listeners=[f"SASL_SSL://127.0.0.1:{port}"]) as node:
        contender = Contender("ottla", node, {})
        with contender.topic(1) as topic:
            load = {"do": "one at a time", "topic": topic, "size": 100, "acks": 1}
            contender.drive("raw", seconds=2, **load)
            alone: list[float] = []
            beside: dict[str, list[float]] = {what: [] for what in sent}
            for _ in range(rounds):
                figures = contender.drive("raw", seconds=MEASURED_S, **load)
                alone.append(figures["p99 ms"])
                print(f"alone: p50 {figures['p50 ms']:.3f}, p99 {figures['p99 ms']:.3f} ms")
                for what, hello in sent.items():
                    memory = rss_mb(node.pid)
                    silent = Silent(f"127.0.0.1:{port}", SILENT, hello)
                    try:
                        figures = contender.drive("raw", seconds=MEASURED_S, **load)
                        grown = rss_mb(node.pid) - memory
                    finally:
                        silent.close()
                    beside[what].append(figures["p99 ms"])
                    print(
                        f"beside {SILENT} that sent {what}: p50 {figures['p50 ms']:.3f}, "
                        f"p99 {figures['p99 ms']:.3f} ms, {figures['cpu_s']:.1f} s of CPU; "
                        f"{silent.reopened} opened again, {1000 * grown / SILENT:.0f} KB more each",
                        flush=True,
                    )
    met = True
    for what, found in beside.items():
        ratio = median(found) / median(alone)
        met &= ratio < RATIO_MAX
        print(f"p99 beside {SILENT} that sent {what}: {ratio:.2f} times, below {RATIO_MAX:g}: "
              f"{'met' if ratio < RATIO_MAX else 'MISSED'}")  # fmt: skip
    return met


# A storm of logins


def storm(certificates: Path, rounds: int) -> bool:
    """Whether no piece of the loop's time was longer than it may be."""
    [port] = nodes.free_ports(1)
    settings = {
        **OTTLA_SETTINGS,
        **security(certificates),
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:{port}",
    }
    job = {"address": f"127.0.0.1:{port}", "authority": str(certificates / "ca.pem")}
    command = [sys.executable, "-m", "benchmarks.logins", "storm"]
    pieces, longest = Pieces(verbose=False), []
    with measured(pieces), Broker(settings) as broker:
        plaintext = broker.bootstrap_servers.split(",")[0]
        with ottla.Admin(bootstrap_servers=plaintext) as admin:
            admin.alter_user_scram_credentials(
                [ScramUpsertion(USER, PASSWORD, MECHANISM, ITERATIONS)]
            )
        gc.set_threshold(*GC_THRESHOLDS)  # as `ottla serve` does
        gc.freeze()
        for count in (50, *[STORM] * rounds):  # the first one makes what is made once
            with probed(plaintext) as taken:
                pieces.begin()
                done = subprocess.run(
                    [*command, json.dumps({**job, "count": count})],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
            longest.append(pieces.longest_ms)
            figures, probe = json.loads(done.stdout), percentiles_ms(taken)
            print(
                f"{count} logins by TLS and {MECHANISM}: {figures['seconds']:.2f} s; longest piece "
                f"of the loop {pieces.longest_ms:.1f} ms CPU; ApiVersions of another p50 "
                f"{probe['p50 ms']:.2f}, p99 {probe['p99 ms']:.1f}, at most "
                f"{1000 * max(taken):.1f} ms",
                flush=True,
            )
    met = max(longest[1:]) < STALL_MAX_MS
    print(f"no piece above {STALL_MAX_MS:g} ms: {'met' if met else 'MISSED'}")
    return met


@contextmanager
def probed(address: str) -> Iterator[list[float]]:
    """How long ApiVersions takes on a connection of its own, while the block runs."""
    taken: list[float] = []
    ended = threading.Event()

    def probe() -> None:
        request = frames.request(18, 0, b"")
        with connect(address) as connection:
            while not ended.wait(PROBE_S):
                began = time.perf_counter()
                exchange(connection, [request])
                taken.append(time.perf_counter() - began)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


async def log_in(job: Mapping[str, object]) -> dict[str, float]:
    """The clients of a storm, all at once; how long it took until the last was in."""
    host, _, port = str(job["address"]).rpartition(":")
    config = AdminConfig.from_options({}, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": MECHANISM,
        "sasl.username": USER, "sasl.password": PASSWORD,
        "ssl.truststore.type": "PEM", "ssl.truststore.location": str(job["authority"]),
    })  # fmt: skip
    clock, dice = SystemClock(), Random(1)
    security_ = ClientSecurity.of(config, clock)
    node = Node(0, host, int(port), None)
    clients = [
        BrokerConnection(node, config, clock, dice, security_)
        for _ in range(int(str(job["count"])))
    ]
    began = time.perf_counter()

    async def one(client: BrokerConnection) -> float:
        await client.ready()
        return time.perf_counter() - began

    taken = await asyncio.gather(*map(one, clients))
    for client in clients:
        client.peer.close()
    return {"seconds": max(taken)}


# The run


def security(certificates: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "sasl.enabled.mechanisms": MECHANISM,
    }


def main(args: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.logins")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="write data here; default: the temporary folder")
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="ottla-logins-") as name:
        certificates = Path(name) / "certificates"
        make = [sys.executable, "-m", "ottla", "certs", "make", str(certificates)]
        subprocess.run(make, check=True, capture_output=True)
        met = storm(certificates, options.rounds)
        met &= silent_handshakes(Path(name) / "ottla", certificates, options.rounds)
    return 0 if met else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["storm"]:
        print(json.dumps(asyncio.run(log_in(json.loads(sys.argv[2])))))
    else:
        sys.exit(main(sys.argv[1:]))
