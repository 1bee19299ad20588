"""A client that does what it can under a quota, in a process of its own.

Owns: the four loads of `benchmarks.quotas`. Each runs for a warm-up and a measured time, and prints
what it got in a second of the latter, and the longest throttle time that it was told:
`python -m benchmarks.quota_load '{"do": "produce", …}'`.
"""

from __future__ import annotations

import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import frames
from ottla.model.errors import ErrorCode
from ottla.protocol import wire

RECORD_BYTES: Final = 1_000
PASSWORD: Final = "secret"
CREATE_TOPICS, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 19, 17, 18, 36
CONNECTING: Final = 32
"""Threads that open connections: so many that some can try while others are held back."""
CONNECTING_BY_ADDRESS: Final = 64
"""Here they are held back until they are closed, and Kafka closes them up to half a second late.
With fewer it is measured how soon a broker closes them."""
PARTITIONS: Final = 3
"""Of each new topic."""
Job = Mapping[str, Any]
Figures = dict[str, float]


class Measured:
    """What is got in the measured time."""

    def __init__(self, job: Job) -> None:
        self._start = time.monotonic() + job["warm_up_s"]
        self._seconds = job["measured_s"]
        self._total = 0
        self.throttle_ms = 0.0

    @property
    def is_over(self) -> bool:
        return bool(time.monotonic() >= self._start + self._seconds)

    def count(self, amount: int) -> None:
        if self._start <= time.monotonic() < self._start + self._seconds:
            self._total += amount

    def on_throttled(self, event: Any) -> None:
        self.throttle_ms = max(self.throttle_ms, event.throttle_time * 1000)

    @property
    def figures(self) -> Figures:
        return {"rate": self._total / self._seconds, "throttle_ms": self.throttle_ms}


def produce(job: Job) -> Figures:
    measured = Measured(job)

    def on_delivery(error: object, _: object) -> None:
        if not measured.is_over:
            assert error is None, error
            measured.count(RECORD_BYTES)

    settings = {"queue.buffering.max.messages": 1_000, "batch.size": 50_000, "linger.ms": 20}
    producer = Producer({**_client(job), **settings, "throttle_cb": measured.on_throttled})
    while not measured.is_over:
        try:
            producer.produce(job["topic"], bytes(RECORD_BYTES), on_delivery=on_delivery)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
    producer.purge()
    producer.flush(5)
    return measured.figures


def fetch(job: Job) -> Figures:
    measured = Measured(job)
    settings = {
        "group.id": "quotas",
        "fetch.message.max.bytes": 50_000,
        "queued.max.messages.kbytes": 100,
        "throttle_cb": measured.on_throttled,
    }
    consumer = Consumer({**_client(job), **settings})
    consumer.assign([TopicPartition(job["topic"], 0, 0)])
    while not measured.is_over:
        for record in consumer.consume(500, 0.1):
            assert record.error() is None, record.error()
            measured.count(len(record.value() or b""))
    consumer.close()
    return measured.figures


def connect(job: Job) -> Figures:
    """Opens connections from one address and closes each after a first reply."""
    measured = Measured(job)
    host, _, port = job["bootstrap"].rpartition(":")
    request = frames.request(API_VERSIONS, 0, b"")

    def drive() -> None:
        while not measured.is_over:
            with socket.socket() as connection:
                connection.settimeout(10)
                connection.bind((job["source"], 0))
                try:
                    connection.connect((host, int(port)))
                    connection.sendall(request)
                    measured.count(1 if connection.recv(4) else 0)
                except OSError:
                    continue

    threads = [threading.Thread(target=drive) for _ in range(job["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return measured.figures


def mutate(job: Job) -> Figures:
    """Creates topics, as a client that waits as long as it is told."""
    measured = Measured(job)
    host, _, port = job["bootstrap"].rpartition(":")
    names = (f"{job['user']}-{number}" for number in itertools.count())
    name = next(names)
    with socket.create_connection((host, int(port)), 60) as connection:
        _log_in(connection, job["user"])
        while not measured.is_over:
            topic = {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
            topic |= {"assignments": [], "configs": []}
            fields = {"topics": [topic], "timeout": 30_000, "validate_only": False}
            reply = _ask(connection, CREATE_TOPICS, job["version"], fields)
            throttle_s = reply.throttle_time.total_seconds()
            measured.throttle_ms = max(measured.throttle_ms, throttle_s * 1000)
            code = reply.topics[0].error_code
            if code is ErrorCode.none:
                measured.count(PARTITIONS)
                name = next(names)
            else:
                assert code is ErrorCode.throttling_quota_exceeded, code
                time.sleep(throttle_s)
    return measured.figures


def _client(job: Job) -> dict[str, Any]:
    return {
        "bootstrap.servers": job["bootstrap"],
        "client.id": job["client_id"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": job["user"],
        "sasl.password": PASSWORD,
    }


def _log_in(connection: socket.socket, user: str) -> None:
    _ask(connection, SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    token = f"\0{user}\0{PASSWORD}".encode()
    reply = _ask(connection, SASL_AUTHENTICATE, 1, {"auth_bytes": token})
    assert reply.error_code is ErrorCode.none, reply.error_message


def _ask(connection: socket.socket, key: int, version: int, fields: Mapping[str, Any]) -> Any:
    connection.sendall(wire.encode_request(key, version, 1, "quotas", fields))
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    reply = connection.recv(size, socket.MSG_WAITALL)
    return wire.decode_reply(key, version, memoryview(reply))


DO: Final[Mapping[str, Callable[[Job], Figures]]] = {
    "produce": produce,
    "fetch": fetch,
    "connect": connect,
    "mutate": mutate,
}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    print(json.dumps(DO[given["do"]](given)))
