"""What `make run` shows, with and without Java, and that it leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.testing import Broker
from tests.spark.without_java import without_java
from tools.demo import shop
from tools.tidy import ROOT

DEADLINE_S = 280.0


def test_without_java_two_clients_write_and_read_and_the_rest_is_left_out(tmp_path: Path) -> None:
    done = without_java(tmp_path, "-m", "tools.demo", "5")
    assert done.returncode == 0, done.stderr
    assert "ready on PLAINTEXT://127.0.0.1:" in done.stdout
    assert all(client in done.stdout for client in ("confluent-kafka", "kafka-python"))
    assert "The second part, a pipeline on Spark, is skipped: java is not installed" in done.stdout
    assert "Every record was written and read." in done.stdout
    assert done.stderr == ""


def test_the_shop_loses_nothing(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    stop = threading.Event()
    late = threading.Timer(DEADLINE_S, stop.set)
    late.start()
    try:
        pipeline = shop.opened(broker.bootstrap_servers, tmp_path, tmp_path / "results")
        assert shop.show_on(spark, pipeline, 1.0, stop), "what came out is not what went in"
        assert not stop.is_set(), "the queries do not catch up"
    finally:
        late.cancel()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_says_nothing_but_its_story_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """In a process of its own, as `make run` has it."""
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    for folder in (here, temporary):
        folder.mkdir()
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-m", "tools.demo", "1"],
        env={**os.environ, **path},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every record was written and read." in done.stdout
    assert done.stderr == "", "what is nobody's concern hides the story"
    assert list(here.iterdir()) == []
    left = {file.name for file in temporary.iterdir()}
    assert "ottla-shop" in left
    kept = {file.name for file in (temporary / "ottla-shop").iterdir()}
    assert kept == {"events", "queries.png"}
    lines = done.stdout.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 80, "one screen"
    for told in ("Refused, and why", "The table:", "The picture:", "Next: .venv/bin/ottla"):
        assert told in done.stdout
    assert not [name for name in left if name.startswith("ottla-demo-")]
