from __future__ import annotations

import json

import pytest

from ottla.cli.pipeline.display import JsonLines, Lines, LiveTable, display
from ottla.model.clock import WallMs
from ottla.spark.pipelines.progress import QueryProgress, QueryTotal

BATCH = QueryProgress("clean", WallMs(0), 3, 1_500, 750.0, 1_400, 2_000, 40, 12, 2.6)


def shown(display: Lines, capsys: pytest.CaptureFixture[str]) -> str:
    total = QueryTotal("clean")
    total.add(BATCH)
    with display:
        display.on_batch(BATCH)
    display.summary([total])
    return capsys.readouterr().out


def test_a_log_gets_a_line_for_each_batch_and_query(capsys: pytest.CaptureFixture[str]) -> None:
    first, last = shown(Lines(), capsys).splitlines()
    assert first.startswith("clean: batch 3  1,500 rows, 750/s  2,000 ms  lag 12 records, 3 s")
    assert last == "clean: 1,500 rows in, 1,400 out, 1 batch in 2.0 s, 750 rows/s"


def test_a_program_gets_json(capsys: pytest.CaptureFixture[str]) -> None:
    first, last = map(json.loads, shown(JsonLines(), capsys).splitlines())
    assert (first["query"], first["lag_records"], first["lag_s"]) == ("clean", 12, 2.6)
    assert last["total"]["rows_in"] == 1_500


def test_a_screen_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(LiveTable(), capsys)
    for cell in ("rows/s", "state rows", "clean", "1,500", "2,000", "12", "40"):
        assert cell in text


def test_what_is_no_screen_gets_lines() -> None:
    assert type(display(as_json=True)) is JsonLines
    assert type(display(as_json=False)) is Lines
