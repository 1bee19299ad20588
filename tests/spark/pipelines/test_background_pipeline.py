"""A pipeline in the background, from its start to its stop, on a broker with default settings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

import ottla
from ottla.testing import Broker
from tests.cluster.process import wait_for
from tests.spark.default_settings import DEFAULT_SETTINGS
from tests.spark.pipelines.jobs import read

DEADLINE_S: Final = 240.0
FILE: Final = """
name: copy
bootstrap: {servers}
checkpoint: {folder}/checkpoints
trigger: 1 second
sources: {{orders: {{topic: orders}}}}
sinks: [{{name: out, from: orders, topic: {{name: copied, value: value}}}}]
"""
BATCH: Final = re.compile(r"out: batch (\d+)  (\d+) rows, [\d,.]+/s  [\d,]+ ms(  .+)?")


class Pipeline:
    """The commands about one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def command(self, *words: str) -> Sequence[str]:
        name, *options = words
        return [sys.executable, "-m", "ottla", "pipeline", name, str(self._path), *options]

    def __call__(self, *words: str, code: int = 0) -> str:
        """What a command prints; on standard error where it is to fail."""
        ran = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert ran.returncode == code, (ran.stdout, ran.stderr)
        return ran.stderr if code == 2 else ran.stdout

    def rows(self) -> list[int]:
        """How many each batch had, by the log."""
        found = map(BATCH.fullmatch, self("logs").splitlines())
        return [int(match[2]) for match in found if match is not None]


def has_batch(folder: Path, batch: int) -> Callable[[], bool]:
    """Whether Spark has committed it: to ask the command all the time would take a core."""
    return (folder / "checkpoints" / "out" / "commits" / str(batch)).exists


def send(servers: str, *values: bytes) -> None:
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for value in values:
            producer.send("orders", value)


@pytest.mark.timeout(600)
def test_a_pipeline_in_the_background_is_shown_followed_and_stopped(tmp_path: Path) -> None:
    with Broker(DEFAULT_SETTINGS) as broker:
        servers = broker.bootstrap_servers
        path = tmp_path / "copy.yaml"
        path.write_text(FILE.format(servers=servers, folder=tmp_path))
        with ottla.Admin(bootstrap_servers=servers) as admin:
            for topic in ("orders", "copied"):
                admin.create_topic(topic, partitions=1)
        send(servers, b"1", b"2", b"3")
        pipeline = Pipeline(path)
        began = pipeline("run", "--background")
        assert re.match(r"copy runs in the background \(process \d+\)\n", began)
        try:
            wait_for(has_batch(tmp_path, 0), DEADLINE_S, "the first batch")
            wait_for(lambda: pipeline.rows() == [3], DEADLINE_S, "its line in the log")
            assert "already running (process" in pipeline("run", "--background", code=2)
            follower = subprocess.Popen(
                pipeline.command("logs", "--lines", "0", "--follow"),
                stdout=subprocess.PIPE,
                text=True,
            )
            send(servers, b"4", b"5")
            wait_for(has_batch(tmp_path, 1), DEADLINE_S, "the second batch")
            wait_for(lambda: sum(pipeline.rows()) == 5, DEADLINE_S, "the other records")
            status = json.loads(pipeline("status", "--json"))
            assert status["pipeline"][0]["state"] == "running"
            (query,) = status["queries"]
            assert (query["query"], query["lag_records"]) == ("out", 0)
            assert query["batch"] == len(pipeline.rows()) - 1
        finally:
            stopped = pipeline("stop")
        assert re.fullmatch(r"copy stopped \(process \d+\)\n", stopped)
        followed, _ = follower.communicate(timeout=DEADLINE_S)
        lines = pipeline("logs").splitlines()
        summary = r"out: 5 rows in(, 5 out)?, [23] batches in [\d.]+ s, [\d,]+ rows/s"
        assert re.fullmatch(summary, lines[-1]), lines
        assert all(map(BATCH.fullmatch, lines[:-1])), "nothing but its batches: no word of Spark's"
        assert lines[0].startswith("out: batch 0  3 rows, ")
        assert pipeline("logs", "--lines", "1").splitlines() == lines[-1:]
        assert followed.splitlines() == lines[-len(followed.splitlines()) :]
        assert followed.splitlines()[-1] == lines[-1]
        assert "stopped" in pipeline("status", code=1)
        assert "does not run" in pipeline("stop", code=2)
        assert b"".join(record.value or b"" for record in read(servers, "copied")) == b"12345"
