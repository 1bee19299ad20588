"""Certificates that are replaced while clients are at work, and who computes handshakes."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import ottla
from ottla.broker.listener_security import HANDSHAKE_NICENESS
from ottla.client.admin import Resource
from ottla.net.tls import connection as tls_connection
from ottla.protocol import wire
from ottla.security.tls.authority import Issued, issue
from ottla.testing import Broker
from tests.cluster.process import wait_for
from tests.fakes.certificates import HOSTS, certificates, client_context
from tests.raw_requests import API_VERSIONS, PRODUCE, Line, batch, create_topics, produce_fields
from tools.nodes import free_ports

CLIENTS: Final = 6
REPLACEMENTS: Final = 3


@contextlib.contextmanager
def secured(store: Path) -> Iterator[tuple[Broker, int]]:
    """A broker with a plaintext and a TLS listener; the port of the latter."""
    [port] = free_ports(1)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
    }
    with Broker(settings) as broker:
        yield broker, port


def write(store: Path, issued: Issued) -> None:
    """As a tool that renews certificates does: a new file takes the place of the old one."""
    new = store.with_suffix(".new")
    new.write_bytes(issued.key_pem() + issued.certificate_pem())
    new.replace(store)


def over_tls(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), 20)
    return context.wrap_socket(plain, server_hostname="localhost")


def serial_number(port: int, context: ssl.SSLContext) -> object:
    with over_tls(port, context) as connection:
        certificate = connection.getpeercert()
        assert certificate is not None
        return certificate["serialNumber"]


class Worker(threading.Thread):
    """A client that produces over one connection, from its start until `ended`."""

    def __init__(self, connection: ssl.SSLSocket, partition: int) -> None:
        super().__init__()
        self.ended = threading.Event()
        self.acknowledged = 0
        self.failure: Exception | None = None
        self._connection = connection
        fields = produce_fields("t", batch("v" * 20_000), partition=partition, acks=1)
        self._request = wire.encode_request(PRODUCE, 7, 1, "worker", fields)

    def run(self) -> None:
        try:
            while not self.ended.is_set():
                self._connection.sendall(self._request)
                self._receive(int.from_bytes(self._receive(4), "big"))
                self.acknowledged += 1
        except Exception as failure:
            self.failure = failure

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            got = self._connection.recv(size - len(data))
            if not got:
                raise ConnectionError("the broker closed the connection")
            data += got
        return data


@pytest.mark.spec("SEC-01")
def test_certificates_are_replaced_under_load_and_no_connection_is_lost(tmp_path: Path) -> None:
    made, store, now_s = certificates(), tmp_path / "broker.pem", time.time()
    context = client_context(tmp_path)
    write(store, made.broker)
    with secured(store) as (broker, port), contextlib.ExitStack() as stack:
        plaintext = broker.bootstrap_servers.split(",")[0]
        admin = stack.enter_context(ottla.Admin(bootstrap_servers=plaintext))
        with Line(plaintext) as line:
            create_topics(line, ["t"], CLIENTS)
        workers = [
            Worker(stack.enter_context(over_tls(port, context)), partition)
            for partition in range(CLIENTS)
        ]
        for worker in workers:
            worker.start()
        try:
            shown = {serial_number(port, context)}
            for number in range(REPLACEMENTS):
                write(store, issue(made.authority, "broker", now_s, hosts=HOSTS))
                some = {"log.cleaner.backoff.ms": str(15_000 + number)}  # files are looked at, too
                admin.incremental_alter_configs({Resource.broker(0): some}).all()
                wait_for(
                    lambda: serial_number(port, context) not in shown, what="the new certificate"
                )
                shown.add(serial_number(port, context))
                done = [worker.acknowledged for worker in workers]
                wait_for(
                    lambda done=done: all(  # type: ignore[misc]
                        worker.acknowledged > before or worker.failure is not None
                        for worker, before in zip(workers, done, strict=True)
                    ),
                    what="every client to go on",
                )
        finally:
            for worker in workers:
                worker.ended.set()
            for worker in workers:
                worker.join()
    assert [worker.failure for worker in workers] == [None] * CLIENTS
    assert len(shown) == REPLACEMENTS + 1


@pytest.mark.spec("SEC-01")
def test_handshakes_are_computed_on_threads_of_their_own_which_give_way_to_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    niceness: set[int] = set()
    handshake = tls_connection._handshake

    def noted(tls: ssl.SSLObject) -> bool | Exception:
        names.append(threading.current_thread().name)
        niceness.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return handshake(tls)

    monkeypatch.setattr(tls_connection, "_handshake", noted)
    store, context = tmp_path / "broker.pem", client_context(tmp_path)
    write(store, certificates().broker)
    with secured(store) as (broker, port), contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(over_tls(port, context))
        with Line(broker.bootstrap_servers.split(",")[0]) as line:
            line.ask(API_VERSIONS, 0)
    assert len(names) >= 20
    assert {name.rpartition("_")[0] for name in names} == {"ottla-tls"}
    assert len(set(names)) <= 2
    lowest = 19
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness == {min(own + HANDSHAKE_NICENESS, lowest)}
