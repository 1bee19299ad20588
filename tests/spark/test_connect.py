"""`format("ottla")` through Spark Connect: `spark.remote`, and a server that runs the jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.client.admin import NewTopic
from tests.cluster.process import BrokerProcess
from tests.spark.committed_reader import committed_values
from tests.spark.connect_server import connect_server
from tools.tidy import ROOT

RECORDS = 40
DEADLINE_S = 400.0


@pytest.mark.timeout(600)
def test_a_remote_session_reads_and_writes_topics_in_batches_and_streams(tmp_path: Path) -> None:
    """The broker has its default settings. The stream goes on from its checkpoint."""
    program = Path(__file__).with_name("connect_client.py")
    with BrokerProcess(tmp_path / "broker") as broker:
        _fill(broker.address)
        with connect_server(tmp_path) as url:
            done = subprocess.run(
                [sys.executable, str(program), url, broker.address, str(tmp_path)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
            )
        assert done.returncode == 0, done.stderr[-4_000:]
        seen = json.loads(done.stdout)
        expected = sorted(str(number) for number in range(RECORDS))
        assert seen["values"] == expected
        assert seen["later"] == RECORDS // 2 - 5
        assert "startingOffsets" in seen["error"]
        assert _values(broker.address, "copied") == expected
        assert (seen["streamed"], seen["streamed again"]) == (RECORDS, 1)
        assert _values(broker.address, "streamed") == sorted([*expected, "late"])


def _fill(servers: str) -> None:
    with ottla.Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 2) for name in ("in", "copied", "streamed")]).all()
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(RECORDS):
            text = str(number).encode()
            producer.send("in", text, key=text, partition=number % 2)


def _values(servers: str, topic: str) -> list[str]:
    return sorted(value.decode() for value in committed_values(servers, topic) if value)
