"""Promise: writes go on within 1.5 s after a dead leader's node is gone from ZooKeeper, and within
0.2 s when a leader is stopped in an orderly way.

Three brokers and one ZooKeeper server; a topic with three replicas, written to with acks=all by our
own producer and by librdkafka at the same time, and an idle one, whose followers' fetches wait. A
leader is killed, or stopped, and started again, time after time. Measured for each client: from the
node's end (a kill) to the next acknowledgement of the partition it led; the longest pause between
two acknowledgements (a stop). Clients back off for at most 200 ms: with their default of a second
they would be measured, not the brokers. Brokers have the default settings of replication.

    python -m benchmarks.failover [--kills N] [--stops N] [--folder DIR]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, Protocol

from tests.cluster.own_load import OwnLoad
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import ThreeBrokers
from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble

TOPIC: Final = "load"
PARTITIONS: Final = 3
KILLED_GOAL_S: Final = 1.5
STOPPED_GOAL_S: Final = 0.2
WAIT_S: Final = 30.0
BACKOFF_MAX_MS: Final = 200
RDKAFKA: Final = {
    "request.timeout.ms": 1000,
    "socket.timeout.ms": 2000,
    "retry.backoff.max.ms": BACKOFF_MAX_MS,
}
BROKERS: Final = {"replica.fetch.wait.max.ms": "500", "replica.fetch.backoff.ms": "1000"}
"""The defaults: the tests' own cluster has shorter ones."""

Samples = dict[str, list[float]]


class Acknowledged(Protocol):
    """A client at work: `tests.cluster.load.Load` or `OwnLoad`."""

    def acknowledgements(self, partition: int, since_ns: int = 0) -> list[int]: ...


def next_acknowledgement_s(client: Acknowledged, partition: int, since_ns: int) -> float:
    wait_for(lambda: bool(client.acknowledgements(partition, since_ns)), WAIT_S, "a write")
    return (client.acknowledgements(partition, since_ns)[0] - since_ns) / 1e9


def kill_leader(
    cluster: ThreeBrokers, clients: Mapping[str, Acknowledged], partition: int
) -> dict[str, float]:
    """For each client, the seconds from the end of the leader's node to the next write."""
    leader = cluster.leader(TOPIC, partition)
    cluster.kill(leader)
    wait_for(lambda: leader not in cluster.registered, WAIT_S, "the session to expire")
    gone_ns = time.monotonic_ns()
    found = {
        name: next_acknowledgement_s(client, partition, gone_ns) for name, client in clients.items()
    }
    cluster.start(leader)
    cluster.wait_until_all_in_sync()
    return found


def stop_leader(
    cluster: ThreeBrokers, clients: Mapping[str, Acknowledged], partition: int
) -> dict[str, float]:
    """For each client, the longest pause between two writes while the leader stops."""
    leader, began_ns = cluster.leader(TOPIC, partition), time.monotonic_ns()
    assert cluster.brokers[leader].terminate() == 0
    ended_ns = time.monotonic_ns()
    for client in clients.values():
        next_acknowledgement_s(client, partition, ended_ns)
    found = {
        name: longest_pause_s(client.acknowledgements(partition, began_ns - 1_000_000_000))
        for name, client in clients.items()
    }
    cluster.start(leader)
    cluster.wait_until_all_in_sync()
    return found


def longest_pause_s(times_ns: Sequence[int]) -> float:
    return max((later - earlier for earlier, later in pairwise(times_ns)), default=0) / 1e9


def add(samples: Samples, seconds: Mapping[str, float]) -> None:
    """Keep the figures of one leader, and print them: a run of fifty takes ten minutes."""
    for name, value in seconds.items():
        samples[name].append(value)
    print(" ", *(f"{name} {value:.3f} s" for name, value in seconds.items()), flush=True)


def report(what: str, samples: Samples, goal_s: float) -> None:
    print(f"{what} (goal: at most {goal_s} s)")
    for name, values in samples.items():
        median, most = statistics.median(values), max(values)
        print(f"  {name:<12} n={len(values)}  median {median:.3f} s  max {most:.3f} s")


def measure(folder: Path, kills: int, stops: int) -> None:
    path = folder / "failover"
    path.mkdir()
    with (
        zookeeper_ensemble(folder / "zookeeper", 1) as servers,
        ThreeBrokers(Ensemble(servers), path, BROKERS) as cluster,
    ):
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.create_topic("idle", 6)
        own = OwnLoad(cluster.bootstrap, TOPIC, PARTITIONS, retry_backoff_max_ms=BACKOFF_MAX_MS)
        rdkafka = cluster.load(TOPIC, PARTITIONS, producers=1, settings=RDKAFKA)
        killed: Samples = {"ours": [], "librdkafka": []}
        stopped: Samples = {"ours": [], "librdkafka": []}
        with own, rdkafka:
            clients: dict[str, Acknowledged] = {"ours": own, "librdkafka": rdkafka}
            for turn in range(kills):
                add(killed, kill_leader(cluster, clients, turn % PARTITIONS))
            for turn in range(stops):
                add(stopped, stop_leader(cluster, clients, turn % PARTITIONS))
    failures = own.failures + rdkafka.failures
    if kills:
        report(
            "a leader is killed: from the end of its node to the next write", killed, KILLED_GOAL_S
        )
    if stops:
        report("a leader is stopped: longest pause between two writes", stopped, STOPPED_GOAL_S)
    print(f"errors that reached the application: {len(failures)}", *failures[:3], sep="\n  ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--stops", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where brokers keep their data")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.kills, options.stops)


if __name__ == "__main__":
    main()
