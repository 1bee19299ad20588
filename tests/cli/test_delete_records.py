from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.terminal import on_a_terminal
from tests.raw_requests import Line, batch, produced


@pytest.fixture
def filled(topic: str, cli_broker: Broker) -> str:
    with Line(cli_broker.bootstrap_servers) as line:
        produced(line, topic, batch("a", "b", "c"))
    return topic


@pytest.mark.spec("TOOL-18")
def test_records_below_an_offset_are_forgotten(run: Run, filled: str) -> None:
    [row] = run("delete-records", f"{filled}:0", "--before", 2, "--yes", "--json").json
    assert row == {"topic": filled, "partition": 0, "offset": 2}
    rows = run("delete-records", filled, "--before", "end", "-y", "--json").json
    assert [row["offset"] for row in rows] == [3, 0]


def test_offsets_may_come_from_a_file(run: Run, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(
        json.dumps({"partitions": [{"topic": filled, "partition": 0, "offset": 1}], "version": 1})
    )
    assert run("delete-records", "--file", file, "--yes", "--json").json[0]["offset"] == 1


def test_mistakes_are_said_in_a_line(run: Run, filled: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    run("delete-records", filled).failed(2, "--before")
    run("delete-records").failed(2, "TOPIC with --before, or --file")
    run("delete-records", filled, "--before", "1", "--file", bad).failed(2, "or --file")
    run("delete-records", filled, "--before", "-5").failed(2, "--before '-5'")
    run("delete-records", "--file", bad).failed(2, "expected JSON such as")
    run("delete-records", "--file", tmp_path / "none").failed(2, "No such file")
    run("delete-records", f"{filled}:0", "--before", 9, "--yes").failed(1, "offset out of range")
    run("delete-records", "nowhere", "--before", 1, "--yes").failed(1, "nowhere")


def test_without_a_terminal_nothing_goes_unless_told_so(run: Run, filled: str) -> None:
    run("delete-records", filled, "--before", 2, stdin="y\n").failed(2, "use --yes", "--dry-run")
    rows = run("offsets", "list", f"{filled}:0", "--json").json
    assert rows[0]["start"] == 0


def test_a_dry_run_shows_how_many_records_would_go_and_stay(run: Run, filled: str) -> None:
    first, second = run("delete-records", filled, "--before", 2, "--dry-run", "--json").json
    assert (first["records_to_go"], first["records_to_stay"]) == (2, 1)
    assert (second["records_to_go"], second["records_to_stay"]) == (0, 0)
    assert first["bytes_now"] > 0
    everything = run("delete-records", filled, "--before", "end", "--dry-run", "--json").json
    assert [row["records_to_go"] for row in everything] == [3, 0]
    assert run("offsets", "list", f"{filled}:0", "--json").json[0]["start"] == 0


def test_on_a_terminal_it_asks(cli_broker: Broker, run: Run, filled: str) -> None:
    words = ["delete-records", f"{filled}:0", "--before", "2", "-b", cli_broker.bootstrap_servers]
    assert on_a_terminal(words, "delete them? [y/N]", "")[0] == 1
    assert run("offsets", "list", f"{filled}:0", "--json").json[0]["start"] == 0
    assert on_a_terminal(words, "delete them? [y/N]", "yes")[0] == 0
    assert run("offsets", "list", f"{filled}:0", "--json").json[0]["start"] == 2


def test_offsets_of_a_file_that_the_protocol_cannot_hold_are_refused(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "huge.json"
    for field in ("partition", "offset"):
        row = {"topic": "t", "partition": 0, "offset": 0, field: 2**63}
        file.write_text(json.dumps({"partitions": [row]}))
        run("delete-records", "--file", file, "--yes").failed(2, "expected JSON such as")
