"""What a pipeline prints, as people run it: one start, a failure, and its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ottla.client.admin.sync import Admin
from ottla.client.admin.topics import NewTopic
from ottla.client.producer.sync import Producer
from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS

DEADLINE_S = 300
PIPELINE = """
name: copy
sources: {letters: {topic: letters, format: string}}
steps:
  - {name: numbers, sql: "SELECT raise_error('bad row') AS value FROM letters WHERE value = 'x'"}
sinks:
  - {name: copies, from: letters, topic: {name: copies, value: value}}
  - {name: faulty, from: numbers, topic: {name: numbers, value: value}}
"""


def run(folder: Path, servers: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ottla", "pipeline", "run", "copy.yaml", "--once"]
    return subprocess.run(
        [*command, "--set", f"bootstrap={servers}"],
        cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip


def test_a_pipeline_prints_only_its_own_lines_and_a_failure_in_one(tmp_path: Path) -> None:
    (tmp_path / "copy.yaml").write_text(PIPELINE)
    with Broker(DEFAULT_SETTINGS) as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            topics = ("letters", "copies", "numbers")
            admin.create_topics([NewTopic(name, 1) for name in topics]).all()
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("letters", b"a")
        good = run(tmp_path, servers)
        assert (good.returncode, good.stderr) == (0, "")
        assert all(line.startswith("letters_sinks") for line in good.stdout.splitlines())
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("letters", b"x")
        bad = run(tmp_path, servers)
    assert bad.returncode == 1
    failure, log = bad.stderr.splitlines()
    assert failure.startswith("ottla: letters_sinks: ")
    assert "bad row" in failure
    assert {path.name for path in tmp_path.iterdir()} == {"copy.yaml", "checkpoints"}
    path = tmp_path / log.removeprefix("ottla: Spark's log: ")
    assert "bad row" in path.read_text()
