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
from tools.demo.interrupts import Interrupts
from tools.demo.shoppers import Shoppers
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
    interrupts = Interrupts()
    late = threading.Timer(DEADLINE_S, interrupts.now.set)
    late.start()
    try:
        pipeline = shop.opened(broker.bootstrap_servers, tmp_path, tmp_path / "results")
        is_equal = shop.show_on(spark, pipeline, 1.0, interrupts)
        assert is_equal is not None, "the queries do not catch up"
        assert is_equal, "what came out is not what went in"
    finally:
        late.cancel()


def test_the_first_interrupt_closes_the_shop_and_the_second_ends_at_once() -> None:
    interrupts = Interrupts()
    shoppers = Shoppers("nowhere:1")
    closing = shop.Closing(shoppers, interrupts)
    interrupts.add()
    closing.look()
    assert interrupts.closing.is_set() and not closing.over.is_set()
    interrupts.add()
    closing.look()
    assert closing.over.is_set() and not closing.caught_up


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
    lines = done.stdout.replace(str(temporary), "/tmp").splitlines()
    live = [line for line in lines if "through every query" in line]  # a pipe's; a screen has none
    assert len(lines) - len(live) <= 22 and max(map(len, lines)) <= 80, "one screen"
    for told in (
        "because: nobody did it",
        "events went in",
        "The table:",
        "The picture:",
        "Next: .venv/bin/ottla",
    ):
        assert told in done.stdout
    assert not [name for name in left if name.startswith("ottla-demo-")]
