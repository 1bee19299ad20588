"""Pipelines from the command line: examples of `--help`, Ctrl-C, and what is wrong with a file."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ottla
from ottla.client.admin import NewTopic
from ottla.spark.pipelines import templates
from ottla.spark.pipelines.runner import STOP_TIMEOUT
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.pipeline.spark_program import DEADLINE_S, run_all

VIEW = b'{"id": "1", "user": "ann", "url": "/", "at": "2026-05-01T12:00:00Z"}'
TESTS = """
tests:
  - name: names
    given: {views: [{id: "1", user: ann, url: /, at: 2026-05-01T12:00:00Z}]}
    expect: {views: [{user: ann}]}
"""
STOPS_WITHIN_S = 8
TOPICS = ("page-views", "page-views-dead", "clean-views", "top-pages", "sessions")


@pytest.fixture
def folder(cli_broker: Broker, tmp_path: Path) -> Path:
    """A folder with the file that examples name, for a broker that has its topics."""
    servers = cli_broker.bootstrap_servers
    text = templates.text("views").replace("localhost:9092", servers)
    (tmp_path / "views.yaml").write_text(text)
    with ottla.Admin(bootstrap_servers=servers) as admin:
        there = set(admin.list_topics())
        admin.create_topics([NewTopic(name, 1) for name in TOPICS if name not in there]).all()
    with ottla.Producer(bootstrap_servers=servers) as producer:
        producer.send("page-views", VIEW)
        producer.send("page-views", b"garbled")
    return tmp_path


@pytest.mark.slow
def test_the_examples_that_end_work_and_bad_sql_is_one_line(folder: Path) -> None:
    examples = [
        "pipeline run views.yaml --once --json",
        "pipeline report views.yaml",
        "pipeline report views.yaml --to views.svg",
        "pipeline validate views.yaml",
        "pipeline validate views.yaml --words-only",
        "pipeline test views.yaml",
        "pipeline plan views.yaml --json",
        "pipeline plan views.yaml",
        "pipeline try views.yaml --records 1000 --rows 5",
        "pipeline try views.yaml --json",
        "pipeline new land orders-to-lake.yaml",
        "pipeline list-templates",
    ]
    text = (folder / "views.yaml").read_text()
    (folder / "bad.yaml").write_text(text.replace("SELECT window", "SELEC window"))
    wrong = ["pipeline", "validate", "bad.yaml"]
    lost = ["pipeline", "run", "views.yaml", "--once", "--set", "sources.views.topic=nowhere"]
    lost += ["--set", "checkpoint=elsewhere"]
    (folder / "views.test.yaml").write_text(TESTS)
    *good, bad, nowhere = run_all(folder, *map(shlex.split, examples), wrong, lost)
    for example, ran in zip(examples, good, strict=True):
        assert ran.code == 0, (example, ran)
    lines = [json.loads(line) for line in good[0].out.splitlines()]
    totals = {one["total"]["query"]: one["total"] for one in lines if "total" in one}
    assert totals["clean"]["rows_in"] >= 2
    assert totals["views_sinks"]["rows_in"] >= 2
    assert any(one.get("lag_records") == 0 for one in lines)
    by_example = dict(zip(examples, good, strict=True))
    assert by_example["pipeline test views.yaml"].out.splitlines() == [
        "ok names",
        "1 passed, 0 failed",
    ]
    plan = json.loads(by_example["pipeline plan views.yaml --json"].out)
    assert plan["sources"][0]["records"] >= 2
    assert {each["query"]: each["records_to_read"] for each in plan["queries"]}["clean"] == 0
    tried = json.loads(by_example["pipeline try views.yaml --json"].out)
    assert tried["views"][0]["user"] == "ann"
    assert tried["dead_letters_of_views"][0]["value"] == "garbled"
    assert (folder / "views.png").stat().st_size > 1_000
    bad.failed(2, "step minutes: sql: ")
    assert bad.err.startswith("ottla: bad.yaml: 1 mistake\nSQL and columns:\n  step minutes: ")
    nowhere.failed(1, "there is no topic nowhere")


@pytest.mark.slow
def test_ctrl_c_ends_a_run_with_its_summary_and_without_complaint(folder: Path) -> None:
    """`ottla pipeline run views.yaml`, as people run it."""
    command = [sys.executable, "-m", "ottla", "pipeline", "run", "views.yaml"]
    with subprocess.Popen(
        [*command, "--metrics-port", "0", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            assert first["rows_in"] >= 2
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
            rest, said = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "metrics on port " in said
    totals = [json.loads(line) for line in rest.splitlines() if '"total"' in line]
    assert {one["total"]["query"] for one in totals} >= {"clean", "top", "seen", "views_sinks"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "trigger=often"], "trigger: 'often': expected once"),
        (["--set", "sinks=[]"], "sinks: expected at least one"),
        (["--set", "surces=1"], "surces: unknown key; did you mean sources?"),
        (["--set", "sources.views.options.kafka.group.id="], "sources.views.options"),
    ],
)
def test_a_mistake_is_one_line_before_anything_starts(
    run: Run, tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "views.yaml").write_text(templates.text("views"))
    path = tmp_path / "views.yaml"
    ran = run("pipeline", "run", path, *words)
    ran.failed(2, said)
    assert len(ran.err.strip().splitlines()) == 1
    ran = run("pipeline", "validate", path, "--words-only", *words)
    ran.failed(2, f"{path}: 1 mistake\nkeys and options:\n  {said}")


def test_a_file_that_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    run("pipeline", "run", tmp_path / "no.yaml").failed(2, "no.yaml: No such file or directory")


@pytest.mark.slow
def test_sigterm_ends_a_run_in_bounded_time(folder: Path) -> None:
    """Whatever its queries are doing."""
    command = [sys.executable, "-m", "ottla", "pipeline", "run", "views.yaml"]
    with subprocess.Popen(
        [*command, "--metrics-port", "0", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            process.terminate()
            told = time.monotonic()
            _, said = process.communicate(timeout=DEADLINE_S)
            took_s = time.monotonic() - told
        finally:
            process.kill()
    assert process.returncode in (0, 1), said
    assert took_s < STOPS_WITHIN_S, (took_s, said)
    assert "Traceback" not in said
    assert process.returncode == 0 or STOP_TIMEOUT in said
