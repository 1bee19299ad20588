"""Promise: three brokers of ours against three of Kafka's on one machine, replication factor 3.

acks=all throughput at least 1.2 times Kafka's for at most two thirds of its CPU per GB, a p99 at a
fixed rate of at most Kafka's, a follower that was down catches up at least as fast, and a killed
controller's 3,000 partitions have leaders within 5 s. Ottla's brokers use one ZooKeeper server,
whose CPU counts as theirs; Kafka's are brokers and controllers in one.

    python -m benchmarks.cluster [--rounds N] [--only NAME,…] [--minutes N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks import report
from benchmarks.contenders import KAFKA_SETTINGS, OTTLA_SETTINGS, Contender, cpu_s, rss_mb
from benchmarks.scenario import KAFKA, OTTLA, Readings, cores
from ottla.cli.kafka.zookeeper_start import command as zookeeper_command
from tools import nodes

BROKERS: Final = 3
WAIT_S: Final = 120.0
GB: Final = 1e9
INTERNAL: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}
WARM_TURNS: Final = 4
MANY_PARTITIONS: Final = 3_000
FAILOVER: Final = f"{MANY_PARTITIONS} partitions, controller killed, session timeout included"
CATCH_UP_BYTES: Final = 1_000_000_000


class Member(NamedTuple):
    """One broker of a cluster, and how to start it again."""

    node: nodes.Node
    start: Callable[[], nodes.Node]


class Cluster:
    """Brokers that run, and the processes beside them whose CPU is theirs too."""

    def __init__(self, name: str, members: Sequence[Member], beside: Sequence[int] = ()) -> None:
        self.name = name
        self.members = list(members)
        self._beside = beside

    @property
    def bootstrap(self) -> str:
        return ",".join(member.node.bootstrap for member in self.members)

    def cpu_s(self) -> float:
        return sum(map(cpu_s, [*(member.node.pid for member in self.members), *self._beside]))

    def memory_mb(self) -> float:
        return sum(rss_mb(member.node.pid) for member in self.members)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    @contextmanager
    def topic(self, name: str, partitions: int) -> Iterator[str]:
        """A replicated topic whose replicas are all in sync; it is deleted afterwards."""
        admin = self.admin()
        _until(lambda: _created(admin, NewTopic(name, partitions, BROKERS)), f"topic {name}")
        _until(lambda: in_sync(admin, name) == partitions * BROKERS, f"the replicas of {name}")
        try:
            yield name
        finally:
            for future in admin.delete_topics([name]).values():
                future.result(WAIT_S)

    def drive(self, **load: Any) -> dict[str, float]:
        """Run librdkafka under load; its figures, and the CPU seconds of the whole cluster."""
        first = Contender(self.name, self.members[0].node._replace(bootstrap=self.bootstrap), {})
        before = self.cpu_s()
        figures = first.drive("rdkafka", **load)
        return {**figures, "cpu_s": self.cpu_s() - before}


def _created(admin: AdminClient, topic: NewTopic) -> bool:
    """False: there is no controller just now."""
    [future] = admin.create_topics([topic]).values()
    try:
        future.result(WAIT_S)
    except KafkaException as refusal:
        code = refusal.args[0].code()
        if code not in (KafkaError.NOT_CONTROLLER, KafkaError.TOPIC_ALREADY_EXISTS):
            raise
        return bool(code == KafkaError.TOPIC_ALREADY_EXISTS)
    return True


def in_sync(admin: AdminClient, topic: str) -> int:
    """Replicas in sync, over all partitions that have a leader."""
    described = admin.list_topics(topic, timeout=WAIT_S).topics[topic]
    return sum(len(each.isrs) for each in described.partitions.values() if each.leader >= 0)


# Scenarios


def throughput(cluster: Cluster, number: int) -> Iterator[tuple[str, Readings]]:
    for size, partitions in ((1000, 12), (1000, 200), (100, 12), (100, 200)):
        volume = 500_000_000 if size == 1000 else 150_000_000
        with cluster.topic(f"load-{number}-{size}-{partitions}", partitions) as topic:
            figures = cluster.drive(
                do="produce", topic=topic, partitions=partitions, size=size, acks=-1, bytes=volume
            )
        metric = "librdkafka produce MB/s"
        yield (
            f"{report.REPLICATED}, {size} B, {partitions} partitions, acks=all",
            {
                metric: figures["bytes"] / figures["seconds"] / 1e6,
                cores(metric): figures["cpu_s"] / figures["seconds"],
                "librdkafka produce CPU s/GB": figures["cpu_s"] / (figures["bytes"] / GB),
            },
        )


def latency(cluster: Cluster, number: int) -> Iterator[tuple[str, Readings]]:
    os.sync()
    with cluster.topic(f"steady-{number}", 12) as topic:
        load = {"topic": topic, "size": 1000, "partitions": 12, "acks": -1}
        taken = cluster.drive(do="end to end", rate=1000, seconds=8, **load)
    readings = {f"end to end {name}": value for name, value in taken.items() if name != "cpu_s"}
    yield f"{report.REPLICATED}, 1000 records of 1 KB a second, acks=all", readings


def catching_up(cluster: Cluster, number: int) -> Iterator[tuple[str, Readings]]:
    """A broker is stopped, a gigabyte is written without it, and it comes back."""
    admin = cluster.admin()
    with cluster.topic(f"behind-{number}", 12) as topic:
        member = cluster.members[-1]
        nodes.stop(member.node)
        load = {"topic": topic, "size": 1000, "partitions": 12, "acks": -1}
        first = Contender(
            cluster.name,
            cluster.members[0].node._replace(
                bootstrap=",".join(each.node.bootstrap for each in cluster.members[:-1])
            ),
            {},
        )
        wrote = first.drive("rdkafka", do="produce", bytes=CATCH_UP_BYTES, **load)
        began = time.perf_counter()
        cluster.members[-1] = Member(member.start(), member.start)
        _until(lambda: in_sync(admin, topic) == 12 * BROKERS, f"{topic} to be in sync")
        seconds = time.perf_counter() - began
    yield (
        f"{report.REPLICATED}, one 1 GB behind, its start included",
        {"catch-up MB/s": wrote["bytes"] / seconds / 1e6},
    )


def failover(cluster: Cluster, number: int) -> Iterator[tuple[str, Readings]]:
    """The controller's broker is killed; every partition must have a live leader again."""
    with cluster.topic(f"many-{number}", MANY_PARTITIONS) as topic:
        admin = cluster.admin()
        controller = admin.list_topics(timeout=WAIT_S).controller_id
        at = controller % BROKERS if cluster.name == OTTLA else controller - 1
        member = cluster.members[at]
        os.kill(member.node.pid, signal.SIGKILL)
        member.node.process.wait()
        began = time.perf_counter()
        live = [each.node.bootstrap for each in cluster.members if each is not member]
        survivor = AdminClient({"bootstrap.servers": ",".join(live), "log_level": 0})
        _until(lambda: _led_without(survivor, topic, controller), f"leaders of {topic}")
        seconds = time.perf_counter() - began
        cluster.members[at] = Member(member.start(), member.start)
        _until(
            lambda: in_sync(survivor, topic) == MANY_PARTITIONS * BROKERS, f"{topic} to be in sync"
        )
    yield (
        FAILOVER,
        {"all leaders elected s": seconds},
    )


def memory(cluster: Cluster, number: int) -> Iterator[tuple[str, Readings]]:
    yield "three brokers after all of this", {"resident MB": cluster.memory_mb()}


SCENARIOS: Final = (latency, throughput, catching_up, failover, memory)
"""Latency first: gigabytes that the kernel still writes back would be measured with it."""
NAMES: Final = tuple(each.__name__ for each in SCENARIOS)


def _led_without(admin: AdminClient, topic: str, dead: int) -> bool:
    described = admin.list_topics(topic, timeout=WAIT_S).topics[topic]
    leaders = [each.leader for each in described.partitions.values()]
    return len(leaders) == MANY_PARTITIONS and all(id >= 0 and id != dead for id in leaders)


# The two clusters


@contextmanager
def kafka_cluster(folder: Path) -> Iterator[Cluster]:
    ports, controllers = nodes.free_ports(BROKERS), nodes.free_ports(BROKERS)
    voters = ",".join(f"{id}@127.0.0.1:{port}" for id, port in enumerate(controllers, start=1))
    members: list[Member] = []
    with _stopping(members):
        for id, (port, controller) in enumerate(zip(ports, controllers, strict=True), start=1):
            home = folder / f"kafka-{id}"
            settings = {
                **KAFKA_SETTINGS,
                **INTERNAL,
                "node.id": str(id),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            }
            properties, _ = nodes.format_kafka(home, settings)
            members.append(_member(partial(nodes.launch_kafka, home, properties, port)))
        for port in ports:
            _until(partial(nodes.answers, port), "Kafka to answer")
        yield Cluster(KAFKA, members)


@contextmanager
def ottla_cluster(folder: Path) -> Iterator[Cluster]:
    [zookeeper_port, *ports] = nodes.free_ports(1 + BROKERS)
    home = folder / "zookeeper"
    home.mkdir(parents=True)
    properties = home / "zookeeper.properties"
    properties.write_text(f"tickTime=200\ndataDir={home}\nclientPort={zookeeper_port}\n")
    with (home / "said.txt").open("wb") as said:
        zookeeper = subprocess.Popen(
            zookeeper_command(properties), stdout=said, stderr=subprocess.STDOUT
        )
    members: list[Member] = []
    try:
        with _stopping(members):
            for id, port in enumerate(ports):
                settings = {
                    **OTTLA_SETTINGS,
                    **INTERNAL,
                    "broker.id": str(id),
                    "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
                    "zookeeper.session.timeout.ms": "2000",
                    "zookeeper.connection.timeout.ms": "60000",
                }
                start = partial(nodes.start_ottla, folder / f"ottla-{id}", settings, port=port)
                members.append(_member(start))
            yield Cluster(OTTLA, members, [zookeeper.pid])
    finally:
        zookeeper.terminate()
        zookeeper.wait()


def _member(start: Callable[[], nodes.Node]) -> Member:
    return Member(start(), start)


@contextmanager
def _stopping(members: list[Member]) -> Iterator[None]:
    try:
        yield
    finally:
        for member in members:
            nodes.stop(member.node)


# The run


def main(args: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.cluster")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(NAMES), help=f"of {', '.join(NAMES)}")
    parser.add_argument("--minutes", type=float, default=60, help="start no turn after this")
    parser.add_argument("--folder", help="write data here; default: the temporary folder")
    options = parser.parse_args(args)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the brokers end, too
    end = time.monotonic() + 60 * options.minutes
    with (
        tempfile.TemporaryDirectory(dir=options.folder, prefix="ottla-cluster-") as folder,
        ExitStack() as stack,
    ):
        clusters = [
            stack.enter_context(kafka_cluster(Path(folder))),
            stack.enter_context(ottla_cluster(Path(folder))),
        ]
        idle: dict[str, list[Readings]] = {
            each.name: [{"idle MB": each.memory_mb()}] for each in clusters
        }
        for cluster in clusters:
            _warm(cluster)
        readings = {"three idle brokers": idle}
        readings |= _measured(clusters, options.rounds, options.only.split(","), end)
    rows = [row for name, turns in readings.items() for row in report.rows(name, turns)]
    print(f"\n{report.table(rows)}\n")
    return 0


def _measured(
    clusters: Sequence[Cluster], rounds: int, only: Sequence[str], end: float
) -> dict[str, dict[str, list[Readings]]]:
    readings: dict[str, dict[str, list[Readings]]] = {}
    for scenario in (each for each in SCENARIOS if each.__name__ in only):
        for number in range(rounds):
            if time.monotonic() > end:
                _say(f"no time for round {number + 1} of {scenario.__name__}")
                break
            turn = clusters if number % 2 == 0 else clusters[::-1]
            for cluster in turn:
                for name, values in scenario(cluster, number):
                    of_name = readings.setdefault(name, {each.name: [] for each in clusters})
                    of_name[cluster.name].append(values)
                    shown = ", ".join(f"{k} {report.number(v)}" for k, v in values.items())
                    _say(f"{cluster.name}: {name}: {shown}")
    return readings


def _warm(cluster: Cluster) -> None:
    for number in range(WARM_TURNS):
        with cluster.topic(f"warm-{number}", 12) as topic:
            load = {"topic": topic, "partitions": 12, "size": 1000, "acks": -1}
            cluster.drive(do="produce", bytes=300_000_000, **load)


def _until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out waiting for {what}")
        time.sleep(0.02)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
