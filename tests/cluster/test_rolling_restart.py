"""Three clients write through a rolling restart of three brokers and see no error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cluster.load import wait_for_progress
from tests.cluster.own_load import OwnLoad
from tests.cluster.process import wait_for
from tests.cluster.three_brokers import ThreeBrokers
from tests.skips import skip_without
from tests.store.zookeeper_server import Ensemble
from tools import kafka_cache

TOPIC = "load"
PARTITIONS = 3
JAVA_RECORDS = 6_000
JAVA_RATE = 200


def start_java(bootstrap: str, topic: str) -> subprocess.Popen[str]:
    """Kafka's own producer: idempotent and acks=all, as it is by default."""
    try:
        command = kafka_cache.tool(
            "kafka-producer-perf-test", "--topic", topic, "--bootstrap-server", bootstrap,
            "--num-records", str(JAVA_RECORDS), "--throughput", str(JAVA_RATE),
            "--record-size", "100",
        )  # fmt: skip
    except kafka_cache.Missing as missing:
        skip_without(str(missing))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.spec("CTL-76")
def test_no_client_sees_an_error_in_a_rolling_restart(ensemble: Ensemble, tmp_path: Path) -> None:
    with ThreeBrokers(ensemble, tmp_path) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        cluster.create_topic("java", PARTITIONS)
        java = start_java(cluster.bootstrap, "java")
        own = OwnLoad(cluster.bootstrap, TOPIC, PARTITIONS)
        with cluster.load(TOPIC, PARTITIONS, producers=1) as load, own:
            wait_for_progress(load)
            wait_for(lambda: own.acknowledged > 100, what="acknowledgements")
            cluster.roll(lambda: wait_for_progress(load))
        said, complaints = java.communicate(timeout=120)
        assert load.failures == []
        assert own.failures == []
        assert f"{JAVA_RECORDS} records sent" in said
        errors = [line for line in complaints.splitlines() if "Exception" in line]
        assert [line for line in errors if "WARN" not in line] == []  # those are of retries
        cluster.wait_until_all_in_sync()
        cluster.assert_no_tracebacks()
