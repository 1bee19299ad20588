"""A data directory that Apache Kafka wrote, served by Ottla: every record, every offset."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from tests.interop.kafka_data import EAGER, Everything, fill, read_everything, until_compacted
from tools import kafka_cache, nodes

ALL, COMMITTED = "read_uncommitted", "read_committed"


class Written(NamedTuple):
    """What Kafka had before it was stopped."""

    folder: Path
    kind: str
    bootstrap: str
    configs: Path
    read: dict[str, Everything]


@pytest.fixture(
    scope="module", params=["server", pytest.param("server-3.9", marks=pytest.mark.slow)]
)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp(request.param)
    try:
        with nodes.kafka(folder, EAGER, kind=request.param, options=nodes.QUICK_JVM) as node:
            fill(node.bootstrap)
            until_compacted(node.data_dir)
            described = kafka_cache.run_tool(
                "kafka-configs", "--bootstrap-server", node.bootstrap,
                "--entity-type", "topics", "--describe",
            )  # fmt: skip
            read = {
                level: read_everything(node.bootstrap, isolation=level)
                for level in (ALL, COMMITTED)
            }
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    configs = folder / "configs.txt"
    configs.write_text(described.stdout)
    return Written(folder, request.param, node.bootstrap, configs, read)


def adopt(written: Written, *options: str) -> subprocess.CompletedProcess[str]:
    data = str(written.folder / "data")
    command = [sys.executable, "-m", "ottla", "adopt", data, "--configs", str(written.configs)]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False)


def test_ottla_serves_every_record_at_its_own_offset_and_kafka_can_go_on_from_there(
    written: Written,
) -> None:
    looked = adopt(written, "--dry-run")
    assert looked.returncode == 0, looked.stderr
    adopted = adopt(written)
    assert adopted.returncode == 0, adopted.stderr
    assert "__cluster_metadata-0: the metadata of a KRaft cluster" in adopted.stderr
    settings = {"broker.id": "1", "log.cleaner.enable": "false"}
    with nodes.ottla(written.folder, settings) as node:
        for level, kept in written.read.items():
            assert read_everything(node.bootstrap, isolation=level) == kept
        producer = Producer({"bootstrap.servers": node.bootstrap})
        offsets: list[int | None] = []
        producer.produce("cut", b"new", on_delivery=lambda _, m: offsets.append(m.offset()))
        assert producer.flush(30) == 0
        assert offsets == [written.read[ALL][("cut", 0)].end]
        kept = read_everything(node.bootstrap)
    again = adopt(written)
    assert again.returncode == 2 and "adopted" in again.stderr
    assert read_by_kafka(written) == kept


def read_by_kafka(written: Written) -> Everything:
    """The way back: Kafka goes on where Ottla stopped."""
    port = int(written.bootstrap.rpartition(":")[2])
    properties = written.folder / "server.properties"
    node = nodes.run_kafka(
        written.folder, properties, port, kind=written.kind, options=nodes.QUICK_JVM
    )
    try:
        return read_everything(node.bootstrap)
    finally:
        nodes.stop(node)
