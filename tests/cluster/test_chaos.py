"""Random faults on three brokers and three ZooKeeper servers, under all kinds of load."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.chaos import Chaos
from tests.cluster.file_systems import tmpfs
from tests.cluster.secure_cluster import ClusterSecurity, guarded_ensemble
from tests.cluster.three_brokers import IDS, ThreeBrokers, host_of
from tests.cluster.workload import BROKER_SETTINGS, LOAD, Workload
from tests.store.zookeeper_server import Ensemble

DISK_SIZE = "400m"


def run_chaos(
    ensemble: Ensemble,
    folder: Path,
    faults: int,
    seed: int,
    security: ClusterSecurity | None = None,
) -> None:
    """Who is not root has no file systems of their own, and no full disk among the faults."""
    with ExitStack() as stack:
        disks: dict[int, Path] = {}
        cluster = ThreeBrokers(ensemble, folder, BROKER_SETTINGS, security)
        if os.geteuid() == 0:
            for id in IDS:
                disks[id] = stack.enter_context(tmpfs(folder / f"disk-{id}", DISK_SIZE))
                cluster.brokers[id].dirs = [disks[id] / "data"]
        stack.enter_context(cluster)
        chaos = Chaos(cluster, LOAD, seed, disks)
        workload = Workload(cluster, seed)
        with workload:
            for number in range(faults):
                workload.wait_for_progress()
                name, inject = chaos.draw()
                print(f"{number + 1} of {faults}: {name}", flush=True)
                workload.fault(name)
                inject()
            workload.wait_for_progress()
        print(workload.describe(workload.verify()))


@pytest.mark.timeout(300)
@pytest.mark.spec("REP-23", "TXN-46", "TXN-47", "GRP-75")
def test_ten_random_faults_lose_nothing(ensemble: Ensemble, tmp_path: Path) -> None:
    run_chaos(ensemble, tmp_path, faults=10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_a_hundred_random_faults_lose_nothing(
    ensemble: Ensemble, tmp_path: Path, seed: int
) -> None:
    """Twenty-five for each seed."""
    run_chaos(ensemble, tmp_path, faults=25, seed=seed)


@pytest.mark.slow
@pytest.mark.spec("SEC-01")
def test_ten_random_faults_lose_nothing_where_everybody_logs_in(tmp_path: Path) -> None:
    """SASL_SSL between brokers and to clients, ACLs in force, a login at ZooKeeper."""
    security = ClusterSecurity(tmp_path / "security", [host_of(id) for id in IDS])
    with guarded_ensemble(tmp_path / "zookeeper") as ensemble:
        run_chaos(ensemble, tmp_path, faults=10, seed=2, security=security)
