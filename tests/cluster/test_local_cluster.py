"""The development cluster of `ottla cluster start`, and taking a broker out of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.client.admin import Resource
from tests.cluster.process import wait_for


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def succeeded(*words: object) -> str:
    ran = run(*words)
    assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
    return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data_dir = tmp_path_factory.mktemp("local") / "cluster"
    yield data_dir
    run("cluster", "stop", "--data-dir", data_dir)


@pytest.fixture(scope="module")
def started(folder: Path) -> str:
    quick = "zookeeper.session.timeout.ms=2000"
    said = succeeded(
        "cluster", "start", "--data-dir", folder, "--port", "21092", "-n", 3, "--set", quick
    )
    [line] = [line for line in said.splitlines() if line.startswith("connect to:")]
    return line.split()[-1]


@pytest.fixture
def bootstrap(folder: Path, started: str) -> str:
    """The cluster, all of it running."""
    if run("cluster", "status", "--data-dir", folder).returncode:
        succeeded("cluster", "start", "--data-dir", folder)
    return started


def processes(folder: Path) -> dict[str, dict[str, Any]]:
    rows = json.loads(run("cluster", "status", "--data-dir", folder, "--json").stdout)
    return {row["process"]: row for row in rows}


def send(bootstrap: str, topic: str, count: int) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(topic, str(number).encode())
        producer.flush()


def assert_sent(bootstrap: str, topic: str, count: int) -> None:
    printed = succeeded("consume", topic, "-b", bootstrap)
    assert sorted(map(int, printed.split())) == list(range(count))


def delete_topics_of_other_tests(bootstrap: str) -> None:
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        admin.delete_topics(admin.list_topics(internal=True)).all()


def assert_becomes_healthy(bootstrap: str) -> None:
    deadline = time.monotonic() + 60
    while not (health := run("cluster", "health", "-b", bootstrap)).stdout.startswith("healthy"):
        assert time.monotonic() < deadline, (health.stdout, health.stderr)


def findings(bootstrap: str, *command: str) -> dict[str, list[str]]:
    """What a command says of each subject."""
    printed = json.loads(run(*command, "-b", bootstrap, "--json").stdout)
    rows = printed["findings"] if isinstance(printed, dict) else printed
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["subject"], []).append(f"{row['what']} -> {row['what_to_do']}")
    return found


@pytest.mark.spec("TOOL-20")
def test_a_cluster_starts_stops_and_starts_again_with_its_records(
    folder: Path, bootstrap: str
) -> None:
    assert len(bootstrap.split(",")) == 3
    states = [row["state"] for row in processes(folder).values()]
    assert states == ["running"] * 4, "ZooKeeper and three brokers"
    again = run("cluster", "start", "--data-dir", folder)
    assert again.returncode == 2
    assert "the cluster is running" in again.stderr
    send(bootstrap, "kept", 100)
    began = time.monotonic()
    succeeded("cluster", "stop", "--data-dir", folder)
    print(f"stopped in {time.monotonic() - began:.1f} s")
    assert run("cluster", "status", "--data-dir", folder).returncode == 1
    succeeded("cluster", "start", "--data-dir", folder)
    assert_sent(bootstrap, "kept", 100)


@pytest.mark.spec("TOOL-20", "MON-20")
def test_health_and_doctor_tell_what_is_down_and_a_start_brings_it_back(
    folder: Path, bootstrap: str
) -> None:
    delete_topics_of_other_tests(bootstrap)  # one with too few replicas is a finding
    succeeded("topics", "create", "sick", "--partitions", 3, "-r", 3, "-b", bootstrap)
    assert_becomes_healthy(bootstrap)
    before = processes(folder)
    os.kill(before["broker-1"]["pid"], signal.SIGKILL)
    wait_for(
        lambda: any(
            "2 of 3 replicas are in sync -> look at broker 1: is it up" in line
            for line in findings(bootstrap, "cluster", "health").get("sick-0", [])
        ),
        60,
        "under-replicated partitions",
    )
    assert run("cluster", "health", "-b", bootstrap).returncode == 0, "all can be used"
    os.kill(before["broker-2"]["pid"], signal.SIGKILL)
    wait_for(
        lambda: any(
            "fewer than min.insync.replicas=2: acks=all is refused" in line
            for line in findings(bootstrap, "doctor").get("sick-0", [])
        ),
        60,
        "partitions below min.insync.replicas",
    )
    assert any("is not running" in line for line in findings(bootstrap, "doctor")["broker 2"])
    assert run("cluster", "health", "-b", bootstrap).returncode == 1
    said = succeeded("cluster", "start", "--data-dir", folder)
    assert "broker-1 ready" in said
    assert "broker-0 ready" not in said, "it had been running"
    after = processes(folder)
    assert after["broker-0"]["pid"] == before["broker-0"]["pid"]
    assert_becomes_healthy(bootstrap)


@pytest.mark.spec("CTL-59")
def test_a_broker_is_decommissioned_if_that_is_safe_and_no_record_is_lost(
    folder: Path, bootstrap: str
) -> None:
    delete_topics_of_other_tests(bootstrap)
    succeeded("topics", "create", "wide", "--partitions", 1, "-r", 3, "-b", bootstrap)
    refused = run("brokers", "decommission", 1, "-b", bootstrap)
    assert refused.returncode == 2
    assert "wide-0: 3 replicas need 3 brokers, but only 2 are left" in refused.stderr
    succeeded("topics", "delete", "wide", "--yes", "-b", bootstrap)
    succeeded("topics", "create", "orders", "--partitions", 6, "-r", 2, "-b", bootstrap)
    send(bootstrap, "orders", 1_000)
    assert "0 left" in succeeded("brokers", "drain", 1, "-b", bootstrap)
    rows = json.loads(succeeded("brokers", "list", "-b", bootstrap, "--json"))
    assert next(row["leaders"] for row in rows if row["broker"] == 1) == 0
    plan = json.loads(succeeded("brokers", "decommission", 1, "--dry-run", "-b", bootstrap))
    assert all(1 not in row["replicas"] for row in plan["partitions"])
    assert "has no replicas left" in succeeded("brokers", "decommission", 1, "-b", bootstrap)
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        described = admin.describe_topic("orders")
        assert all(1 not in partition.replicas for partition in described.partitions)
        wait_for(
            lambda: all(
                not partition.under_replicated
                for partition in admin.describe_topic("orders").partitions
            ),
            what="every partition to be whole",
        )
    assert_sent(bootstrap, "orders", 1_000)


@pytest.mark.spec("TOOL-16")
def test_a_move_says_how_much_is_left_and_can_be_cancelled(bootstrap: str, tmp_path: Path) -> None:
    topic, plan = "moved", tmp_path / "plan.json"
    succeeded("topics", "create", topic, "--partitions", 1, "-r", 1, "-b", bootstrap)
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        for _ in range(30):
            producer.send(topic, os.urandom(100_000))
        producer.flush()
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        [home] = admin.describe_topic(topic).partitions[0].replicas
        slow = {"leader.replication.throttled.rate": "20000"}
        admin.incremental_alter_configs(
            {
                Resource.topic(topic): {"leader.replication.throttled.replicas": "*"},
                Resource.broker(home): slow,
            }
        ).all()
        other = (home + 1) % 3
        plan.write_text(succeeded("reassign", "plan", topic, "--brokers", other, "-b", bootstrap))
        begun = succeeded("reassign", "execute", plan, "-b", bootstrap)
        # A throttle holds back what follows a first fetch, which may have come already.
        assert re.search(r"begun: 1 of 1, [23]\.\d MB to copy", begun), begun
        moving = run("reassign", "verify", plan, "-b", bootstrap)
        assert moving.returncode == 1
        assert "1 partitions still move" in moving.stderr
        assert "MB to copy" in moving.stderr
        said = succeeded("reassign", "cancel", plan, "-b", bootstrap)
        assert said == "cancelled: 1 of 1\n"
        wait_for(
            lambda: admin.describe_topic(topic).partitions[0].replicas == (home,), 30, "its replica"
        )
        admin.incremental_alter_configs({Resource.broker(home): dict.fromkeys(slow)}).all()
    done = succeeded("reassign", "execute", plan, "--wait", 60, "-b", bootstrap)
    assert done.endswith("moved: 1 of 1\n")
    assert "done" in succeeded("reassign", "verify", plan, "-b", bootstrap)
