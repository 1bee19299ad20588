"""What would stop a pipeline is found before it starts, on a broker with default settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.client.admin.sync import Admin
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.checkpoint_owner import claim
from ottla.spark.pipelines.preflight import findings
from ottla.spark.pipelines.spec import Pipeline
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS
from tools import nodes


def pipeline(servers: str, folder: Path, **changes: Any) -> Pipeline:
    values: dict[str, Any] = {
        "name": "orders",
        "bootstrap": servers,
        "checkpoint": str(folder / "checkpoints"),
        "sources": {"a": {"topic": "orders", "dead_letter": "dead"}, "b": {"pattern": "x.*"}},
        "sinks": [
            {"name": "out", "from": "a", "topic": "clean"},
            {"name": "lake", "from": "a", "delta": str(folder / "lake")},
        ],
    }
    return yaml_file.parse({**values, **changes})


def test_topics_that_are_missing_and_not_created_are_found(tmp_path: Path) -> None:
    with Broker(DEFAULT_SETTINGS) as broker:
        made = pipeline(broker.bootstrap_servers, tmp_path)
        (missing,) = findings(made)
        assert missing.startswith("sources.a: there is no topic orders at ")
        assert findings(made, offline=True) == []
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("orders", partitions=1)
        assert findings(made) == []
    with Broker({**DEFAULT_SETTINGS, "auto.create.topics.enable": "false"}) as broker:
        missing_topics = findings(pipeline(broker.bootstrap_servers, tmp_path))
        assert [line.split(":")[0] for line in missing_topics] == [
            "sources.a", "sources.a.dead_letter", "sink out",
        ]  # fmt: skip


def test_a_cluster_that_does_not_answer_a_bad_path_and_another_owner_are_all_found(
    tmp_path: Path,
) -> None:
    (tmp_path / "lake").write_text("a file")
    claim(str(tmp_path / "checkpoints"), "views")
    servers = f"127.0.0.1:{nodes.free_ports(1)[0]}"
    path, owner, cluster = findings(pipeline(servers, tmp_path))
    assert path == f"sink lake: path: {tmp_path}/lake cannot be written"
    assert "the checkpoints of the pipeline views, not of orders" in owner
    assert cluster.startswith(f"bootstrap: no answer from {servers}")


def test_jars_and_files_for_executors_that_do_not_exist_are_found(tmp_path: Path) -> None:
    jar, missing = tmp_path / "store.jar", tmp_path / "other.jar"
    jar.touch()
    made = pipeline(
        "broker:9092",
        tmp_path,
        spark={
            "spark.jars": f"{jar}, {missing},hdfs://lake/x.jar,{tmp_path}/*.jar",
            "spark.archives": f"{tmp_path}/env.tar#env",
        },
    )
    assert findings(made, offline=True) == [
        f"spark.spark.jars: there is no {missing}",
        f"spark.spark.archives: there is no {tmp_path}/env.tar#env",
    ]
