"""`ottla pipeline validate` as people run it: all that is wrong with a file, in one go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ottla.testing import Broker
from tests.spark.default_settings import DEFAULT_SETTINGS

DEADLINE_S = 120
FILE = """
name: orders
bootstrap: {servers}
trigger: "${{env:TRIGGER}}"
checkpoint: {folder}/checkpoints
sources:
  orders: {{topic: "${{env:TOPIC}}", format: json, schema: "id STRING, total DOUBLE"}}
  clicks: {{topic: clicks, format: xml}}
  raw: {{topic: raw, watermark: {{column: at, delay: 1 minute}}}}
steps:
  - {{name: large, sql: "SELEC id FROM orders"}}
  - {{name: totals, sql: "SELECT sum(totl) AS t FROM orders WHERE id = '${{env:SECRET}}'"}}
  - {{name: of_large, sql: "SELECT * FROM large"}}
  - {{name: of_clicks, from: clicks, deduplicate: id}}
  - {{name: first, from: orders, deduplicate: idd}}
sinks:
  - {{name: a, from: orders, topic: {{name: out, key: ordr}}}}
  - {{name: b, from: orders, parquet: {{path: {folder}/lake, partition_by: day}}}}
  - {{name: c, from: of_large, topic: out}}
"""


def validate(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", "pipeline", "validate", str(path)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_every_mistake_is_told_in_its_group_without_what_variables_stand_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "orders.yaml"
    (tmp_path / "lake").write_text("a file")
    with Broker(DEFAULT_SETTINGS) as broker:
        path.write_text(FILE.format(servers=broker.bootstrap_servers, folder=tmp_path))
        ran = validate(path, TRIGGER="hunter1", TOPIC="hunter2", SECRET="hunter3")
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    lines = [line.split("; did you mean")[0] for line in ran.stderr.splitlines()]
    assert lines[0] == f"ottla: {path}: 11 mistakes"
    groups = {
        "keys and options:": [
            "trigger: '${env:TRIGGER}': expected once",
            "sources.clicks.format: 'xml': expected one of",
        ],
        "SQL and columns:": [
            "sources.raw: watermark: [UNRESOLVED",
            "step large: sql: [PARSE_SYNTAX_ERROR]",
            "step totals: sql: [UNRESOLVED_COLUMN",
            "step first: deduplicate: ",
            "sink a: topic: [UNRESOLVED_COLUMN",
            "sink b: partition_by: orders has no column 'day'; it has",
        ],
        "topics, paths and checkpoints:": [
            f"sink b: path: {tmp_path}/lake cannot be written",
            f"sources.orders: there is no topic ${{env:TOPIC}} at {broker.bootstrap_servers}",
            f"sources.raw: there is no topic raw at {broker.bootstrap_servers}",
        ],
    }
    expected = [each for group, those in groups.items() for each in (group, *those)]
    assert len(lines) == len(expected) + 1, ran.stderr
    for line, words in zip(lines[1:], expected, strict=True):
        assert line.strip().startswith(words), ran.stderr
    assert "hunter" not in ran.stderr
