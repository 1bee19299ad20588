"""How far a running query is behind, as tools tell it that know nothing of Spark."""

from __future__ import annotations

import json
import time

import pytest

from ottla.cli import main
from ottla.model.clock import SystemClock
from tests.spark.spark_cluster import Cluster
from tools import kafka_cache

DEADLINE_S = 120.0
READ, UNREAD = 20, 35
AN_HOUR_MS = 3_600_000


def described(cluster: Cluster, group: str, capfd: pytest.CaptureFixture[str]) -> list[int]:
    """Committed, end and lag by `ottla groups describe`; nothing as long as there is no group."""
    capfd.readouterr()
    words = ["groups", "describe", group, "--json", "--bootstrap-server", cluster.servers]
    code = main.run(words)
    told = capfd.readouterr()
    rows = json.loads(told.out)["partitions"] if code == 0 else []
    return [row[name] for row in rows for name in ("committed", "end", "lag")]


def described_by_kafka(cluster: Cluster, group: str) -> list[int]:
    """The same by Kafka's own kafka-consumer-groups."""
    words = ("--bootstrap-server", cluster.servers, "--describe", "--group", group)
    done = kafka_cache.run_tool("kafka-consumer-groups", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    head, *lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    columns = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    return [int(line[head.index(column)]) for line in lines for column in columns]


@pytest.mark.spec("APP-06", "TOOL-12")
def test_every_tool_that_shows_lag_shows_that_of_a_running_query(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    source, target = cluster.topic(1), cluster.topic(1)
    group = f"lag-of-{source}"
    # The query reads what is half an hour old, so that it is behind for as long as one looks.
    old_ms = SystemClock().wall_ms() - AN_HOUR_MS
    cluster.fill(source, [f"old {at}" for at in range(READ)], timestamp_ms=old_ms)
    cluster.fill(source, [f"new {at}" for at in range(UNREAD)])
    options = {"ottla.delay": "30m", "kafka.group.id": group}
    query = (
        cluster.stream(source, **options)
        .select("value")
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", cluster.servers)
        .option("topic", target)
        .option("checkpointLocation", cluster.checkpoint())
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        expected = [READ, READ + UNREAD, UNREAD]
        while (found := described(cluster, group, capfd)) != expected:
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        assert described_by_kafka(cluster, group) == expected
        assert query.isActive
        assert len(cluster.values(target)) == READ
    finally:
        query.stop()
