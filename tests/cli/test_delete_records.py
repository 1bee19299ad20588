from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.asking import Line, batch, produced
from tests.cli.ottla_program import Run


@pytest.fixture
def filled(topic: str, cli_broker: Broker) -> str:
    with Line(cli_broker.bootstrap_servers) as line:
        produced(line, topic, batch("a", "b", "c"))
    return topic


@pytest.mark.spec("TOOL-18")
def test_records_below_an_offset_are_forgotten(run: Run, filled: str) -> None:
    [row] = run("delete-records", f"{filled}:0", "--before", 2, "--json").json
    assert row == {"topic": filled, "partition": 0, "offset": 2}
    rows = run("delete-records", filled, "--before", "end", "--json").json
    assert [row["offset"] for row in rows] == [3, 0]


def test_offsets_may_come_from_a_file(run: Run, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(
        json.dumps({"partitions": [{"topic": filled, "partition": 0, "offset": 1}], "version": 1})
    )
    assert run("delete-records", "--file", file, "--json").json[0]["offset"] == 1


def test_mistakes_are_said_in_a_line(run: Run, filled: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    run("delete-records", filled).failed(2, "--before")
    run("delete-records").failed(2, "TOPIC with --before, or --file")
    run("delete-records", filled, "--before", "1", "--file", bad).failed(2, "or --file")
    run("delete-records", filled, "--before", "-5").failed(2, "--before '-5'")
    run("delete-records", "--file", bad).failed(2, "expected JSON such as")
    run("delete-records", "--file", tmp_path / "none").failed(2, "No such file")
    run("delete-records", f"{filled}:0", "--before", 9).failed(1, "offset out of range")
    run("delete-records", "nowhere", "--before", 1).failed(1, "nowhere")
