"""A pipeline whose sink needs a jar that its user supplies, on a broker with default settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS
from tests.spark.pipelines.store_jar import CLASS, store_jar

DEADLINE_S = 240
PIPELINE = """
name: to-store
bootstrap: {servers}
sources: {{letters: {{topic: letters, format: string}}}}
spark: {{spark.jars: {jar}, spark.hadoop.fs.shop.impl: {name}}}
sinks: [{{name: store, from: letters, parquet: {{path: "shop://{lake}"}}}}]
"""


@pytest.mark.timeout(300)
def test_a_sink_writes_to_a_store_that_a_jar_of_the_user_brings(tmp_path: Path) -> None:
    jar, lake = store_jar(tmp_path), tmp_path / "lake"
    with Broker(DEFAULT_SETTINGS) as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("letters", 1)]).all()
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("letters", b"a")
        text = PIPELINE.format(servers=servers, jar=jar, name=CLASS, lake=lake)
        (tmp_path / "to-store.yaml").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "pipeline", "run", "to-store.yaml", "--once"],
            cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row for path in lake.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert rows == [{"value": "a"}]
