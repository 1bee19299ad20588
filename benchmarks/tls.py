"""Promise: over TLS at least 1.2 times Kafka's rate in and its rate out, for less CPU per GB.

Both brokers have one listener in plaintext and one with TLS, the same certificate and the same
cipher suite, which is verified before anything is measured. 12 partitions of 1 KB records, acks=1;
librdkafka and the load driver on bare sockets take turns over both listeners, so that the cost of
TLS itself is in the same run.

    python -m benchmarks.tls [--rounds N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import report
from benchmarks.contenders import KAFKA_SETTINGS, OTTLA_SETTINGS, Contender
from benchmarks.raw import connect
from benchmarks.scenario import KAFKA, OTTLA, Readings, cores
from tools import nodes

SUITE: Final = "TLS_AES_256_GCM_SHA384"
PARTITIONS: Final = 12
RECORD_BYTES: Final = 1000
VOLUME: Final = 1_000_000_000
CONNECTIONS: Final = 4
WARM_TURNS: Final = 2
GB: Final = 1e9
PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"


class Target(NamedTuple):
    """A broker, its two listeners, and the authority of its certificate."""

    contender: Contender
    secured: str
    authority: str

    def drive(self, driver: str, *, tls: bool, **load: Any) -> dict[str, float]:
        if tls:
            load |= {"bootstrap": self.secured, "authority": self.authority}
        return self.contender.drive(driver, **load)


def measure(target: Target, *, tls: bool) -> Readings:
    """What goes in and out through one of the listeners."""
    readings: dict[str, float] = {}
    with target.contender.topic(PARTITIONS) as topic:
        load: dict[str, Any] = {
            "topic": topic,
            "partitions": PARTITIONS,
            "size": RECORD_BYTES,
            "acks": 1,
        }
        load |= {"connections": CONNECTIONS, "bytes": VOLUME, "tls": tls}
        wrote = target.drive("raw", do="produce", **load)
        _note(readings, "raw produce", wrote)
        _note(readings, "raw consume", target.drive("raw", do="consume", **load))
        read = target.drive("rdkafka", do="consume", records=wrote["records"], **load)
        _note(readings, "librdkafka consume", read)
    with target.contender.topic(PARTITIONS) as topic:
        load |= {"topic": topic}
        _note(readings, "librdkafka produce", target.drive("rdkafka", do="produce", **load))
    return readings


def _note(readings: dict[str, float], what: str, figures: dict[str, float]) -> None:
    metric = f"{what} MB/s"
    readings[metric] = figures["bytes"] / figures["seconds"] / 1e6
    readings[cores(metric)] = figures["cpu_s"] / figures["seconds"]
    readings[f"{what} CPU s/GB"] = figures["cpu_s"] / (figures["bytes"] / GB)


@contextmanager
def running(folder: Path, certificates: Path) -> Iterator[list[Target]]:
    """Apache Kafka and Ottla with the same key, both up for the whole run."""
    security = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.cipher.suites": SUITE,
    }
    authority = str(certificates / "ca.pem")
    with ExitStack() as stack:
        secured = [f"127.0.0.1:{port}" for port in nodes.free_ports(2)]
        kafka = nodes.kafka(
            folder / "kafka",
            {**KAFKA_SETTINGS, **security, "listener.security.protocol.map": PROTOCOLS},
            listeners=[f"SSL://{secured[0]}"],
        )
        ottla = nodes.ottla(
            folder / "ottla", {**OTTLA_SETTINGS, **security}, listeners=[f"SSL://{secured[1]}"]
        )
        yield [
            Target(Contender(KAFKA, stack.enter_context(kafka), {}), secured[0], authority),
            Target(Contender(OTTLA, stack.enter_context(ottla), {}), secured[1], authority),
        ]


def check_suite(target: Target) -> None:
    """Both must use the same cipher suite: their rates depend on it."""
    context = ssl.create_default_context(cafile=target.authority)
    with context.wrap_socket(connect(target.secured), server_hostname="127.0.0.1") as connection:
        used = connection.cipher()
    assert used is not None and used[0] == SUITE, f"{target.contender.name} uses {used}"


def main(args: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.tls")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="write data here; default: the temporary folder")
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="ottla-tls-") as name:
        certificates = Path(name) / "certificates"
        make = [sys.executable, "-m", "ottla", "certs", "make", str(certificates)]
        subprocess.run(make, check=True, capture_output=True)
        with running(Path(name), certificates) as targets:
            for target in targets:
                check_suite(target)
                for _ in range(WARM_TURNS):
                    measure(target, tls=True)
            rows = _rows(targets, options.rounds)
    print(f"\n{report.table(rows)}\n")
    return 0


def _rows(targets: Sequence[Target], rounds: int) -> list[report.Row]:
    turns: dict[str, dict[str, list[Readings]]] = {}
    for number in range(rounds):
        for kind, tls in (("TLS", True), ("plaintext", False)):
            name = f"{kind}, 1 KB, {PARTITIONS} partitions, acks=1"
            of_name = turns.setdefault(name, {KAFKA: [], OTTLA: []})
            for target in targets if number % 2 == 0 else targets[::-1]:
                readings = measure(target, tls=tls)
                of_name[target.contender.name].append(readings)
                shown = [f"{k} {report.number(v)}" for k, v in readings.items()]
                print(f"{target.contender.name}: {name}: {', '.join(shown)}", flush=True)
    return [row for name, readings in turns.items() for row in report.rows(name, readings)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
