"""Random faults on three brokers and three ZooKeeper servers, under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.chaos import Chaos
from tests.cluster.load import wait_for_progress
from tests.cluster.three_brokers import ThreeBrokers
from tests.store.zookeeper_server import Ensemble

TOPIC = "load"
IMPATIENT = {"request.timeout.ms": 1000, "socket.timeout.ms": 2000}


def run_chaos(ensemble: Ensemble, folder: Path, faults: int, seed: int) -> None:
    with ThreeBrokers(ensemble, folder) as cluster:
        cluster.create_topic(TOPIC)
        chaos = Chaos(cluster, TOPIC, seed)
        with cluster.load(TOPIC, settings=IMPATIENT, pause_s=0.005) as load:
            for _ in range(faults):
                wait_for_progress(load)
                print(chaos.inject(load))
                cluster.wait_until_all_in_sync()
            wait_for_progress(load)
        assert load.failures == []
        cluster.assert_nothing_lost(load)


@pytest.mark.timeout(180)
def test_ten_random_faults_lose_nothing(ensemble: Ensemble, tmp_path: Path) -> None:
    run_chaos(ensemble, tmp_path, faults=10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 102))
def test_a_hundred_random_faults_lose_nothing(
    ensemble: Ensemble, tmp_path: Path, seed: int
) -> None:
    run_chaos(ensemble, tmp_path, faults=50, seed=seed)
