"""Kafka's tools for clusters, against three brokers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.load import create_topic, produce
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import IDS, ThreeBrokers
from tests.interop.tools_in_one import KafkaTools
from tests.store.zookeeper_server import Ensemble, zookeeper_ensemble
from tools import kafka_cache

pytestmark = pytest.mark.timeout(240)

VALUES: Final = [f"n-{number}" for number in range(2_000)]
DESCRIBE: Final = ("kafka-topics", "--describe")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeBrokers]:
    folder = tmp_path_factory.mktemp("tools-of-clusters")
    settings = {"min.insync.replicas": "1"}
    with (
        zookeeper_ensemble(folder / "zookeeper", 1) as servers,
        ThreeBrokers(Ensemble(servers), folder, settings) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def tools(cluster: ThreeBrokers) -> Iterator[KafkaTools]:
    try:
        running = KafkaTools(cluster.bootstrap)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    yield running
    running.close()


def assignment(cluster: ThreeBrokers, topic: str) -> list[int]:
    [replicas] = [found for name, _, found in cluster.partitions() if name == topic]
    return replicas


def write_plan(folder: Path, topic: str, replicas: list[int]) -> str:
    moved = {"topic": topic, "partition": 0, "replicas": replicas}
    path = folder / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    return str(path)


@pytest.mark.spec("TOOL-16", "REP-73")
def test_kafka_reassign_partitions_generates_executes_verifies_and_cancels(
    cluster: ThreeBrokers, tools: KafkaTools, tmp_path: Path
) -> None:
    topic, command = "moved", "kafka-reassign-partitions"
    create_topic(cluster.bootstrap, topic, 1, replicas=2)
    produce(cluster.bootstrap, topic, VALUES, size=1_000)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generated = tools.done(
        command, "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3", "--generate"
    )
    plans: list[Any] = [json.loads(line) for line in generated.splitlines() if line[:1] == "{"]
    before = assignment(cluster, topic)
    assert plans[0]["partitions"][0]["replicas"] == before
    assert len(plans[1]["partitions"][0]["replicas"]) == 2

    [spare] = set(IDS) - set(before)
    plan = ("--reassignment-json-file", write_plan(tmp_path, topic, [before[0], spare]))
    cluster.isolate_from_brokers(spare)  # it is alive, and cannot catch up
    started = tools.done(command, *plan, "--execute")
    assert f"Successfully started partition reassignment for {topic}-0" in started
    assert "is still in progress" in tools.done(command, *plan, "--verify")
    cancelled = tools.done(command, *plan, "--cancel")
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
    wait_for(lambda: assignment(cluster, topic) == before, 20, "the cancellation")
    cluster.heal()
    cluster.wait_until_all_in_sync()

    tools.done(command, *plan, "--execute", "--throttle", "100000000")
    wait_for(lambda: assignment(cluster, topic) == [before[0], spare], 60, "the move")
    verified = tools.done(command, *plan, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "Clearing broker-level throttles" in verified
    cluster.wait_until_all_in_sync()


@pytest.mark.spec("TOOL-17", "TOOL-06")
def test_kafka_leader_election_and_the_filters_of_kafka_topics(
    cluster: ThreeBrokers, tools: KafkaTools
) -> None:
    topic = "elected"
    create_topic(cluster.bootstrap, topic, 1, replicas=2, min_insync_replicas="2")
    partition = ("--topic", topic, "--partition", "0")
    for kind in ("under-replicated", "under-min-isr", "unavailable"):
        assert topic not in tools.done(*DESCRIBE, f"--{kind}-partitions")
    preferred, follower = assignment(cluster, topic)

    cluster.kill(preferred)
    cluster.wait_for_leader(topic, other_than=preferred)
    wait_for(lambda: cluster.state(topic).isr == (follower,), 20, "the replica to leave")
    assert f"Topic: {topic}" in tools.done(*DESCRIBE, "--under-replicated-partitions")
    assert f"Topic: {topic}" in tools.done(*DESCRIBE, "--under-min-isr-partitions")

    cluster.kill(follower)
    cluster.start(preferred)
    wait_for(lambda: cluster.leader(topic) == -1, 20, "the partition to go offline")
    assert f"Topic: {topic}" in tools.done(*DESCRIBE, "--unavailable-partitions")
    elected = tools.done("kafka-leader-election", "--election-type", "unclean", *partition)
    assert f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0" in elected
    assert cluster.leader(topic) == preferred

    cluster.start(follower)
    cluster.wait_until_all_in_sync()
    assert cluster.brokers[preferred].terminate() == 0
    cluster.start(preferred)
    cluster.wait_until_all_in_sync()
    assert cluster.leader(topic) == follower
    elected = tools.done("kafka-leader-election", "--election-type", "preferred", *partition)
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in elected
    assert cluster.leader(topic) == preferred


@pytest.mark.spec("TOOL-18")
def test_kafka_log_dirs_and_kafka_replica_verification_see_equal_replicas(
    cluster: ThreeBrokers, tools: KafkaTools
) -> None:
    topic = "verified"
    cluster.create_topic(topic, 1)
    produce(cluster.bootstrap, topic, VALUES)
    cluster.wait_until_all_in_sync()
    printed = tools.done("kafka-log-dirs", "--describe", "--topic-list", topic)
    [line] = [line for line in printed.splitlines() if line[:1] == "{"]
    brokers = {broker["broker"]: broker["logDirs"] for broker in json.loads(line)["brokers"]}
    assert sorted(brokers) == list(IDS)
    sizes = {dirs[0]["partitions"][0]["size"] for dirs in brokers.values()}
    assert len(sizes) == 1
    assert "max lag is 0 for partition verified-0" in verify_replicas(cluster, topic)


def verify_replicas(cluster: ThreeBrokers, topic: str) -> str:
    """The first report of a tool that never ends."""
    command = kafka_cache.tool(
        "kafka-replica-verification", "--broker-list", cluster.bootstrap,
        "--topics-include", topic, "--report-interval-ms", "500",
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            return next((line for line in process.stdout if "max lag" in line), "")
        finally:
            process.kill()
