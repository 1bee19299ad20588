"""Promise: under a quota a client gets what Apache Kafka gives it, within 5 %.

Both brokers have the same users and the same quotas; the same clients do what they can, all at the
same time, for the quotas are small. After a warm-up of 30 s the rates are measured over 60 s.

Then, of Ottla alone: what a client that is throttled costs another one, and request time, which has
a formula of its own (100 % is one event loop).

    python -m benchmarks.quotas [--warm-up S] [--measured S] [--only levels|users|clients|alone]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer

import ottla
from benchmarks.contenders import KAFKA_SETTINGS, OTTLA_SETTINGS, Contender
from benchmarks.quota_load import (
    CONNECTING,
    CONNECTING_BY_ADDRESS,
    PASSWORD,
    RECORD_BYTES,
)
from benchmarks.scenario import KAFKA, OTTLA
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from tools import nodes

USERS: Final = tuple(f"u{number}" for number in range(1, 13))
FILLED, WRITTEN = "filled", "written"
LARGEST_RATE: Final = 700_000
CONNECTION_RATE: Final = 25
CREATE_TOPICS_STRICT, CREATE_TOPICS_OLD = 7, 4
ALLOWED: Final = 0.05
OTHERS_S: Final = 15
ALONE: Final = "alone"
"""The part that measures Ottla alone."""


class Step(NamedTuple):
    """One client, and the quota that applies to it."""

    name: str
    entity: QuotaEntity | None
    quota: str
    limit: float
    load: Mapping[str, Any]


class Target(NamedTuple):
    """One broker: its node, and the addresses of its three listeners."""

    contender: Contender
    logins: str
    limited: str


def main(args: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quotas")
    parser.add_argument("--warm-up", type=int, default=30, metavar="S")
    parser.add_argument("--measured", type=int, default=60, metavar="S")
    parser.add_argument("--only", choices=(*PHASES, ALONE), action="append")
    options = parser.parse_args(args)
    chosen = options.only or (*PHASES, ALONE)
    seconds = (options.warm_up, options.measured)
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, ExitStack() as stack:
        names = (OTTLA,) if chosen == [ALONE] else (KAFKA, OTTLA)
        targets = [stack.enter_context(_running(name, Path(folder) / name)) for name in names]
        for target in targets:
            _prepare(target.contender.bootstrap, LARGEST_RATE * (sum(seconds) + 30))
        for name, steps in PHASES.items():
            if name in chosen:
                worst = max(worst, _measure(list(steps()), targets, seconds))
        if ALONE in chosen:
            _others(targets[-1].contender)
            _request_time(targets[-1].contender)
    print(f"largest difference {worst:.1%}")
    return 0 if worst <= ALLOWED else 1


def _levels() -> Iterator[Step]:
    yield from _bytes("user, client id", QuotaEntity("u1", "c1"), 300_000, ("u1", "c1"))
    yield from _bytes("user, default client id", QuotaEntity("u2", DEFAULT), 400_000, ("u2", "x"))
    yield from _bytes("user", QuotaEntity("u3"), 500_000, ("u3", "x"))
    entity = QuotaEntity(DEFAULT, "c4")
    yield from _bytes("default user, client id", entity, 600_000, ("u4", "c4"))
    entity = QuotaEntity(DEFAULT, DEFAULT)
    yield from _bytes("default user, default client id", entity, LARGEST_RATE, ("u5", "x"))


def _users() -> Iterator[Step]:
    yield from _bytes("default user", QuotaEntity(DEFAULT), 300_000, ("u6", "x"))
    yield from _connections()


def _clients() -> Iterator[Step]:
    yield from _bytes("client id", QuotaEntity(None, "c7"), 400_000, ("u7", "c7"))
    yield from _bytes("default client id", QuotaEntity(None, DEFAULT), 500_000, ("u8", "x"))
    yield from _mutations()


def _bytes(name: str, entity: QuotaEntity, limit: float, who: tuple[str, str]) -> Iterator[Step]:
    user, client_id = who
    client = {"user": user, "client_id": client_id}
    load = {"do": "produce", "topic": WRITTEN, **client}
    yield Step(f"produce by {name}", entity, "producer_byte_rate", limit, load)
    load = {"do": "fetch", "topic": FILLED, **client}
    yield Step(f"fetch by {name}", entity, "consumer_byte_rate", limit, load)


def _connections() -> Iterator[Step]:
    quota = "connection_creation_rate"
    for name, entity, limit, source in (
        ("ip", QuotaEntity(ip="127.0.0.5"), 20, "127.0.0.5"),
        ("default ip", QuotaEntity(ip=DEFAULT), 30, "127.0.0.6"),
    ):
        load = {"do": "connect", "source": source, "threads": CONNECTING_BY_ADDRESS}
        yield Step(f"connections by {name}", entity, quota, limit, load)
    yield Step("", QuotaEntity(ip="127.0.0.1"), quota, 1_000, {})  # for the other clients
    yield Step("", QuotaEntity(ip="127.0.0.7"), quota, 1_000, {})
    limited = {"do": "connect", "source": "127.0.0.7", "threads": CONNECTING, "listener": "limited"}
    yield Step("connections of a listener", None, "", CONNECTION_RATE, limited)


def _mutations() -> Iterator[Step]:
    quota = "controller_mutation_rate"
    for name, user, version in (
        ("by user", "u9", CREATE_TOPICS_STRICT),
        ("by user, old version", "u10", CREATE_TOPICS_OLD),
    ):
        load = {"do": "mutate", "user": user, "version": version}
        yield Step(f"mutations {name}", QuotaEntity(user), quota, 6, load)


def _measure(steps: Sequence[Step], targets: Sequence[Target], seconds: tuple[int, int]) -> float:
    """Runs all loads on both brokers at once; the largest difference between the two."""
    quotas: dict[QuotaEntity, dict[str, float | None]] = {}
    for step in steps:
        if step.entity is not None:
            quotas.setdefault(step.entity, {})[step.quota] = step.limit
    for target in targets:
        _set(target, quotas)
    running = {
        (step.name, target.contender.name): _start(step, target, seconds)
        for step in steps
        for target in targets
        if step.load
    }
    found = {key: _figures(process) for key, process in running.items()}
    for target in targets:
        _set(target, {entity: dict.fromkeys(some) for entity, some in quotas.items()})
    worst = 0.0
    for step in steps:
        if step.load:
            kafka, ours = found[step.name, KAFKA], found[step.name, OTTLA]
            ratio = ours["rate"] / kafka["rate"]
            worst = max(worst, abs(ratio - 1))
            print(
                f"{step.name}: quota {step.limit:,.0f}, Kafka {kafka['rate']:,.1f} a second, "
                f"Ottla {ours['rate']:,.1f}, ratio {ratio:.3f}; longest throttle time told "
                f"{kafka['throttle_ms']:,.0f} and {ours['throttle_ms']:,.0f} ms",
                flush=True,
            )
    return worst


def _set(target: Target, quotas: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
    with ottla.Admin(bootstrap_servers=target.contender.bootstrap) as admin:
        admin.alter_client_quotas(quotas).all()


def _start(step: Step, target: Target, seconds: tuple[int, int]) -> subprocess.Popen[str]:
    addresses = {"limited": target.limited, "logins": target.logins}
    job = {
        **step.load,
        "bootstrap": addresses[step.load.get("listener", "logins")],
        "warm_up_s": seconds[0],
        "measured_s": seconds[1],
    }
    command = [sys.executable, "-m", "benchmarks.quota_load", json.dumps(job)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _figures(process: subprocess.Popen[str]) -> dict[str, float]:
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args!r}: exit code {process.returncode}")
    figures: dict[str, float] = json.loads(output)
    return figures


def _others(contender: Contender) -> None:
    """What another client has of eight that are throttled all the time."""
    entity = QuotaEntity(None, "greedy")
    with contender.topic(1) as topic, ottla.Admin(bootstrap_servers=contender.bootstrap) as admin:
        ordinary = {"topic": topic, "size": 100, "acks": 1, "seconds": OTHERS_S}
        contender.drive("raw", do="one at a time", **{**ordinary, "seconds": 3})  # warm
        quiet = contender.drive("raw", do="one at a time", **ordinary)
        admin.alter_client_quotas({entity: {"producer_byte_rate": 100_000}}).all()
        command = [sys.executable, "-m", "benchmarks.quotas", "greedy", contender.bootstrap, topic]
        greedy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert greedy.stdout is not None
        greedy.stdout.readline()  # they are throttled by now
        beside = contender.drive("raw", do="one at a time", **ordinary)
        greedy.kill()
        greedy.wait()
        admin.alter_client_quotas({entity: {"producer_byte_rate": None}}).all()
    for name in ("p50 ms", "p99 ms"):
        print(f"another client, {name}: alone {quiet[name]:.3f}, beside eight throttled "
              f"{beside[name]:.3f}")  # fmt: skip


def _greedy(bootstrap: str, topic: str) -> None:
    """Eight producers that send as much as they are let."""
    told: list[Any] = []
    settings = {"bootstrap.servers": bootstrap, "client.id": "greedy", "throttle_cb": told.append}
    settings |= {"queue.buffering.max.messages": 1_000}
    producers = [Producer(settings) for _ in range(8)]
    is_told = False
    while True:
        for producer in producers:
            try:
                producer.produce(topic, bytes(RECORD_BYTES))
            except BufferError:
                producer.poll(0.01)
        if told and not is_told:
            is_told = True
            print("throttled", flush=True)


def _request_time(contender: Contender) -> None:
    """Small requests of clients that may have a tenth of the event loop."""
    entity = QuotaEntity("ANONYMOUS")
    with contender.topic(4) as topic, ottla.Admin(bootstrap_servers=contender.bootstrap) as admin:
        load = {"do": "small", "topic": topic, "size": 100, "acks": 1, "partitions": 4}
        load |= {"connections": 4, "in_flight": 5}
        free = contender.drive("raw", **load, seconds=5)
        admin.alter_client_quotas({entity: {"request_percentage": 10}}).all()
        contender.drive("raw", **load, seconds=15)  # what may be used at once is used up
        limited = contender.drive("raw", **load, seconds=20)
        admin.alter_client_quotas({entity: {"request_percentage": None}}).all()
    for name, figures in (("without a quota", free), ("with 10 %", limited)):
        rate, cores = (figures[key] / figures["seconds"] for key in ("requests", "cpu_s"))
        print(f"request time {name}: {rate:,.0f} requests/s, {cores:.2f} cores of the broker")


def _prepare(bootstrap: str, size: int) -> None:
    """A topic to fetch from, and one to write to."""
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(FILLED, partitions=1)
        admin.create_topic(WRITTEN, partitions=12)
    # Batches much smaller than what is fetched in the measured time: a fetch returns whole ones.
    settings = {"bootstrap.servers": bootstrap, "client.id": "filler", "batch.size": 50_000}
    producer = Producer({**settings, "linger.ms": 20})
    for _ in range(size // RECORD_BYTES):
        while True:
            try:
                producer.produce(FILLED, bytes(RECORD_BYTES))
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


@contextmanager
def _running(name: str, folder: Path) -> Iterator[Target]:
    logins, limited = (f"127.0.0.1:{port}" for port in nodes.free_ports(2))
    listeners = (f"LOGINS://{logins}", f"LIMITED://{limited}")
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    protocols = "PLAINTEXT:PLAINTEXT,LOGINS:SASL_PLAINTEXT,LIMITED:PLAINTEXT"
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.logins.plain.sasl.jaas.config": f"{module} required {users};",
        "listener.name.limited.max.connection.creation.rate": str(CONNECTION_RATE),
    }
    key = "listener.security.protocol.map"
    if name == KAFKA:
        settings |= {**KAFKA_SETTINGS, key: f"{protocols},CONTROLLER:PLAINTEXT"}
        start = nodes.kafka(folder, settings, listeners=listeners)
    else:
        settings |= {**OTTLA_SETTINGS, key: protocols}
        start = nodes.ottla(folder, settings, listeners=listeners)
    with start as node:
        yield Target(Contender(name, node, {}), logins, limited)


PHASES: Final[Mapping[str, Callable[[], Iterator[Step]]]] = {
    "levels": _levels,
    "users": _users,
    "clients": _clients,
}
"""Levels that do not hide each other are measured together."""


if __name__ == "__main__":
    if sys.argv[1:2] == ["greedy"]:
        _greedy(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
