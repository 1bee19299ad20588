"""OpenLineage events of a run, as its client writes them."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.naming.dataset import (
    HDFS,
    S3,
    DatasetNaming,
    Kafka,
    LocalFileSystem,
    Postgres,
)
from pyspark.sql.types import StructType

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.lineage.datasets import inputs, outputs
from ottla.spark.pipelines.lineage.run_events import RUNNING_EVERY_MS, run_events
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.spec import Pipeline
from tests.cluster.process import wait_for
from tests.fakes.manual_time import ManualClock


class Frame:
    """What is asked of a DataFrame: its columns."""

    schema = StructType().add("_key", "binary").add("item", "string").add("n", "integer")


def pipeline(folder: Path, **transport: str) -> Pipeline:
    given = transport or {"type": "file", "log_file_path": str(folder / "events"), "append": "true"}
    return yaml_file.parse(
        {
            "name": "orders",
            "bootstrap": "one:9092,two:9092",
            "lineage": {"namespace": "shop", "transport": given},
            "sources": {
                "orders": {"topic": "orders", "format": "string", "dead_letter": "dead"},
            },
            "steps": [{"name": "all", "sql": "SELECT * FROM orders"}],
            "sinks": [
                {"name": "clean", "from": "all", "topic": "clean"},
                {"name": "table", "from": "all", "delta": f"{folder}/lake"},
                {"name": "shown", "from": "all", "console": {}},
            ],
        }
    )


def batch(rows: int) -> QueryProgress:
    return QueryProgress("clean", WallMs(0), 1, rows, 1.0, rows - 1, 50, 0)


def events(folder: Path) -> list[dict[str, Any]]:
    path = folder / "events"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


FRAMES: Any = {"orders": Frame(), "all": Frame()}


def test_a_run_is_told_from_its_start_to_its_end(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000_000)
    with run_events(pipeline(tmp_path), FRAMES, clock) as listeners:
        (on_batch,) = listeners
        on_batch(batch(10))
        clock.ns += RUNNING_EVERY_MS * 1_000_000
        on_batch(batch(6))

        def is_running() -> bool:  # told once the event before it was sent
            on_batch(batch(0))
            return len(events(tmp_path)) == 2

        wait_for(is_running)
    found = events(tmp_path)
    assert [one["eventType"] for one in found] == ["START", "RUNNING", "COMPLETE"]
    assert len({one["run"]["runId"] for one in found}) == 1
    assert {(one["job"]["namespace"], one["job"]["name"]) for one in found} == {("shop", "orders")}
    last = found[-1]
    (read,) = last["inputs"]
    assert (read["namespace"], read["name"]) == ("kafka://one:9092", "orders")
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 16
    fields = read["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in fields] == [("item", "string"), ("n", "int")]
    written = {one["name"]: one for one in last["outputs"]}
    assert set(written) == {"clean", f"{tmp_path}/lake", "dead"}
    assert written["clean"]["outputFacets"]["outputStatistics"]["rowCount"] == 14


def test_a_run_that_fails_says_why_without_secrets(tmp_path: Path) -> None:
    secret = replace(pipeline(tmp_path), secrets=("hunter2",))
    with (
        pytest.raises(ValueError, match="hunter2"),
        run_events(secret, FRAMES, ManualClock()),
    ):
        raise ValueError("no login with hunter2")
    last = events(tmp_path)[-1]
    assert last["eventType"] == "FAIL"
    assert last["run"]["facets"]["errorMessage"]["message"] == "no login with ***"


def test_a_catalogue_that_is_away_does_not_stop_a_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing = pipeline(
        tmp_path, type="file", log_file_path=f"{tmp_path}/none/events", append="true"
    )
    with (
        caplog.at_level(logging.WARNING),
        run_events(missing, FRAMES, ManualClock()),
    ):
        pass
    assert "cannot send a lineage event" in caplog.text


def test_without_settings_nothing_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = replace(pipeline(tmp_path), lineage=None)
    with run_events(silent, FRAMES, ManualClock()) as listeners:
        assert listeners == []
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(tmp_path / "events"))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    with run_events(silent, FRAMES, ManualClock()):
        pass
    assert [one["eventType"] for one in events(tmp_path)] == ["START", "COMPLETE"]


def test_a_transport_that_is_unknown_is_a_mistake(tmp_path: Path) -> None:
    wrong = pipeline(tmp_path, type="pigeon")
    with (
        pytest.raises(UserError, match=r"lineage\.transport: "),
        run_events(wrong, FRAMES, ManualClock()),
    ):
        pass


def test_datasets_are_named_as_openlineage_names_them(tmp_path: Path) -> None:
    made = yaml_file.parse(
        {
            "name": "p",
            "sources": {
                "a": {"topic": ["x", "y"]},
                "z": {"assign": '{"v": [0, 1], "w": [0]}', "bootstrap": "one:9092,two:9092"},
                "b": {"csv": "s3a://bucket/in", "schema": "n INT"},
                "h": {"parquet": "hdfs://name:8020/in"},
                "c": {"database": "postgresql://u:secret@db:6432/shop", "table": "items"},
                "d": {"database": "postgresql://u:secret@db", "query": "SELECT 1 FROM x.a JOIN b"},
                "e": {"database": "sqlite:///data/shop.db", "table": "items"},
            },
            "sinks": [{"name": "s", "from": "a", "parquet": "out"}],
        }
    )
    named: list[DatasetNaming] = [
        Kafka("localhost", "9092", "x"),
        Kafka("localhost", "9092", "y"),
        Kafka("one", "9092", "v"),
        Kafka("one", "9092", "w"),
        S3("bucket", "in"),
        HDFS("name", "8020", "/in"),
        Postgres("db", "6432", "shop", "public", "items"),
        Postgres("db", "5432", "u", "x", "a"),
        Postgres("db", "5432", "u", "public", "b"),
    ]
    *found, of_sqlite = inputs(made)
    assert [(one.namespace, one.name) for one in found] == [
        (one.get_namespace(), one.get_name()) for one in named
    ]
    assert (of_sqlite.namespace, of_sqlite.name) == ("sqlite", "/data/shop.db.items")
    assert [one.has_columns for one in found[-3:]] == [True, False, False]
    (written,) = outputs(made)
    as_file = LocalFileSystem(str(Path("out").absolute()))
    assert (written.namespace, written.name) == (as_file.get_namespace(), as_file.get_name())
    assert (written.view, written.query) == ("a", "s")
