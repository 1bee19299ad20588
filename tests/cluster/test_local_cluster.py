"""The development cluster of `ottla cluster start`, and taking a broker out of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
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


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    data_dir = tmp_path / "cluster"
    yield data_dir
    run("cluster", "stop", "--data-dir", data_dir)


@pytest.fixture
def bootstrap(folder: Path) -> str:
    said = succeeded("cluster", "start", "--data-dir", folder, "--port", "21092", "-n", 3)
    [line] = [line for line in said.splitlines() if line.startswith("connect to:")]
    return line.split()[-1]


@pytest.mark.spec("TOOL-20")
def test_a_cluster_starts_stops_and_starts_again_with_its_records(
    folder: Path, bootstrap: str
) -> None:
    assert len(bootstrap.split(",")) == 3
    rows = json.loads(succeeded("cluster", "status", "--data-dir", folder, "--json"))
    assert [row["state"] for row in rows] == ["running"] * 4, "ZooKeeper and three brokers"
    again = run("cluster", "start", "--data-dir", folder)
    assert again.returncode == 2
    assert "the cluster is running" in again.stderr
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(100):
            producer.send("orders", str(number).encode())
        producer.flush()
    succeeded("cluster", "stop", "--data-dir", folder)
    assert run("cluster", "status", "--data-dir", folder).returncode == 1
    succeeded("cluster", "start", "--data-dir", folder)
    printed = succeeded("consume", "orders", "-b", bootstrap)
    assert sorted(map(int, printed.split())) == list(range(100))


@pytest.mark.spec("CTL-59")
def test_a_broker_is_drained_and_decommissioned_without_losing_a_record(
    folder: Path, bootstrap: str
) -> None:
    succeeded("topics", "create", "orders", "--partitions", 6, "-r", 2, "-b", bootstrap)
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(1_000):
            producer.send("orders", str(number).encode())
        producer.flush()
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
    printed = succeeded("consume", "orders", "-b", bootstrap)
    assert sorted(map(int, printed.split())) == list(range(1_000))


def test_a_decommission_that_leaves_too_few_brokers_is_refused(
    folder: Path, bootstrap: str
) -> None:
    succeeded("topics", "create", "orders", "--partitions", 1, "-r", 3, "-b", bootstrap)
    refused = run("brokers", "decommission", 0, "-b", bootstrap)
    assert refused.returncode == 2
    assert "orders-0: 3 replicas need 3 brokers, but only 2 are left" in refused.stderr
