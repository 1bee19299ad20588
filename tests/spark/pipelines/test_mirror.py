"""A mirror between two clusters, with everything killed in the middle of its work."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import ottla
from ottla.client.admin import NewTopic
from ottla.model.clock import SystemClock
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.group_sync import GroupSyncing
from tests.spark.killed_story import kill, session_of
from tests.spark.pipelines.jobs import Record, Stage, headers, read
from tests.spark.quick_jvm import QUICK_SPARK
from tools import nodes

TOPICS = ("orders", "payments")
GROUP = "billing"
DEADLINE_S = 240.0
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
QUICKLY = f"spark={json.dumps(QUICK_SPARK)}"


class Clusters:
    """Two brokers, each a process of its own, and the mirror between them, which is another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = nodes.free_ports(2)
        self._nodes: list[nodes.Node] = [self._launch(at) for at in range(2)]
        self.here, self.there = (f"127.0.0.1:{port}" for port in self._ports)
        text = templates.text("mirror").replace("localhost:9092", self.here)
        self.text = text.replace("localhost:9192", self.there)
        self._file = folder / "mirror.yaml"
        self._file.write_text(self.text)
        self.mirror: subprocess.Popen[bytes] | None = None

    def _launch(self, at: int) -> nodes.Node:
        folder = self._folder / f"broker-{at}"
        node = nodes.launch_ottla(folder, AT_ONCE, port=self._ports[at])
        wait_until(lambda: nodes.answers(self._ports[at]))
        return node

    def start_mirror(self) -> None:
        command = [sys.executable, "-m", "ottla", "pipeline", "run", str(self._file), "--json"]
        with (self._folder / "mirror.log").open("ab") as log:
            self.mirror = subprocess.Popen(
                [*command, "--set", QUICKLY],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )

    def wait_until_mirrored(self) -> None:
        """Until it copies; a mirror that gives up instead says why."""
        running = self.mirror

        def copies() -> bool:
            assert running is not None and running.poll() is None, self.log
            return copied(self.there) > 0

        wait_until(copies)

    def kill_mirror(self) -> None:
        """The driver, its JVM and every Python worker, at once."""
        assert self.mirror is not None
        kill(session_of(self.mirror.pid))
        self.mirror.wait()

    def kill_broker_and_start_it_again(self, at: int) -> None:
        self._nodes[at].process.kill()
        self._nodes[at].process.wait()
        self._nodes[at] = self._launch(at)

    def stop(self) -> None:
        if self.mirror is not None and self.mirror.poll() is None:
            self.kill_mirror()
        for node in self._nodes:
            nodes.stop(node)

    @property
    def log(self) -> str:
        return (self._folder / "mirror.log").read_text(errors="replace")[-4_000:]


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, "it does not come to pass"
        time.sleep(0.5)


def send(servers: str, begin: int, end: int) -> None:
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(begin, end):
            value = None if number % 50 == 0 else str(number).encode()
            producer.send(
                TOPICS[number % 2],
                value,
                key=b"k",
                headers=[("n", b"1")],
                partition=number // 2 % 2,
            )


def copied(servers: str) -> int:
    return sum(len(read(servers, topic)) for topic in TOPICS)


def what(record: Record) -> tuple[Any, ...]:
    return record.topic, record.partition, record.key, record.value


@pytest.mark.spec("APP-08", "APP-09")
def test_a_mirror_killed_at_work_loses_nothing_repeats_nothing_and_groups_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    clusters = Clusters(tmp_path)
    here, there = clusters.here, clusters.there
    try:
        for servers in (here, there):
            with ottla.Admin(bootstrap_servers=servers) as admin:
                admin.create_topics([NewTopic(topic, 2) for topic in TOPICS]).all()
        send(here, 0, 1_000)
        clusters.start_mirror()
        clusters.wait_until_mirrored()
        send(here, 1_000, 2_000)
        clusters.kill_mirror()
        send(here, 2_000, 3_000)
        taken = Second(clusters, Stage(spark, here, tmp_path)).life()

        for topic in TOPICS:
            origin, mirrored = read(here, topic), read(there, topic)
            assert list(map(what, mirrored)) == list(map(what, origin)), "lost, or twice"
            for one, other in zip(origin, mirrored, strict=True):
                told = headers(other)
                assert told["n"] == "1"
                assert told["ottla.mirror.origin"] == here
                assert told["ottla.mirror.offset"] == str(one.offset)
        rest = take(there, 5_000 - 300)
        everything = sorted(map(str, map(what, [*read(here, "orders"), *read(here, "payments")])))
        assert sorted(map(str, map(what, [*taken, *rest]))) == everything, "the group goes on"
    finally:
        clusters.stop()


class Second:
    """The mirror's second life, in this process, with the broker it writes to killed under it."""

    def __init__(self, clusters: Clusters, stage: Stage) -> None:
        self._clusters = clusters
        self._stage = stage
        self._before = copied(clusters.there)
        self._write_takeover: list[Record] = []

    def life(self) -> list[Record]:
        """Until everything is copied; what a group has read of it here, when it moves over."""
        pipeline = self._stage.pipeline(self._clusters.text)
        assert pipeline.group_sync is not None
        self._stage.run(pipeline, self._done)  # QueryFailed if it does not outlast the broker
        GroupSyncing(pipeline.group_sync, SystemClock()).now()
        return self._write_takeover

    def _done(self) -> bool:
        here, there = self._clusters.here, self._clusters.there
        if not self._write_takeover and copied(there) > self._before:
            send(here, 3_000, 4_000)
            self._clusters.kill_broker_and_start_it_again(1)
            send(here, 4_000, 5_000)
            self._write_takeover = take(here, 300)
        return bool(self._write_takeover) and copied(there) == 5_000


def take(servers: str, count: int) -> list[Record]:
    """What the group reads next; its place is committed."""
    consumer: ottla.Consumer[Any, Any] = ottla.Consumer(
        *TOPICS,
        bootstrap_servers=servers,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    found: list[Record] = []
    with consumer:
        wait_until(lambda: _more(consumer, found, count))
        consumer.commit()
    return found


def _more(consumer: ottla.Consumer[Any, Any], found: list[Record], count: int) -> bool:
    found += consumer.poll(1.0, max_records=count - len(found))
    return len(found) >= count
