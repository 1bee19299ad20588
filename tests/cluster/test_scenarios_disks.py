"""Disks of three brokers in trouble.

The numbers are those of the table of scenarios in docs/reliability.md.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cluster.load import wait_for_progress
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import ThreeBrokers
from tests.store.zookeeper_server import Ensemble

TOPIC = "load"


@pytest.mark.spec("REP-71")
def test_scenario_09_a_broker_with_a_wiped_disk_is_not_elected_and_refills(
    ensemble: Ensemble, tmp_path: Path
) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        with cluster.load(TOPIC) as load:
            wait_for_progress(load)
            wiped = cluster.leader(TOPIC)
            load.fault(f"kill -9 of broker {wiped}, and its disk is wiped")
            cluster.kill(wiped)
            [data] = cluster.brokers[wiped].dirs
            shutil.rmtree(data)
            before = cluster.node(f"/brokers/log_dirs/{wiped}")
            cluster.start(wiped)  # at once: its old session may still be there
            cluster.wait_until_all_in_sync()
            assert cluster.node(f"/brokers/log_dirs/{wiped}") != before
            wait_for_progress(load)
        cluster.assert_nothing_lost(load)
        wait_for(lambda: "it leaves every ISR" in cluster.brokers[wiped].said, 5, "the warning")
        cluster.assert_replicas_equal()
