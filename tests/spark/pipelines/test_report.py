"""A history becomes a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.report import (
    MAX_POINTS,
    Bin,
    bins_of,
    by_query,
    draw,
    read,
    summary,
)
from ottla.spark.pipelines.running_queries import History


def batch(number: int, query: str = "clean") -> QueryProgress:
    return QueryProgress(
        query, WallMs(1_700_000_000_000 + number * 1_000), number, 10, 10.0, 10, 50, 0, number, 1
    )


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_what_a_run_wrote_down_is_drawn(tmp_path: Path, suffix: str, begins: bytes) -> None:
    history = History(str(tmp_path))
    for number in range(3):
        history.on_batch(batch(number))
        history.on_batch(batch(number, "top"))
    found = read(tmp_path / "progress.jsonl")
    assert found[0] == batch(0)
    assert {name: len(those) for name, those in by_query(found).items()} == {"clean": 3, "top": 3}
    to = tmp_path / f"views.{suffix}"
    draw(found, "views", to)
    assert to.read_bytes().startswith(begins)


def test_very_many_batches_are_drawn_as_medians_and_ranges() -> None:
    few = bins_of([1, 2], [10.0, 20.0])
    assert few == [Bin(1, 10.0, 10.0, 10.0), Bin(2, 20.0, 20.0, 20.0)]
    many = bins_of(range(10_000), [float(at % 100) for at in range(10_000)])
    assert len(many) == MAX_POINTS
    assert [one.at_ms for one in many] == sorted(one.at_ms for one in many)
    assert min(one.least for one in many) == 0.0
    assert max(one.most for one in many) == 99.0, "peaks are not lost"


@pytest.mark.parametrize("count", [1, 2, 400])
def test_every_query_has_charts_of_its_own(tmp_path: Path, count: int) -> None:
    found = [batch(number, query) for number in range(count) for query in ("clean", "top")]
    alone = [replace(one, query="files", lag_records=None) for one in found[:1]]
    draw([*found, *alone], "views", tmp_path / "views.svg")
    text = (tmp_path / "views.svg").read_text()
    for query in ("clean", "top", "files"):
        assert f"<!-- {query}: " in text
    assert text.count("<!-- rows/s -->") == 3
    assert "<!-- reads no topic -->" in text


def test_a_query_is_summed_up_in_a_few_words() -> None:
    assert summary([batch(1)]) == "1 batch, 10 rows"
    late = replace(batch(2), late_rows=3)
    assert summary([batch(1), late]) == "2 batches, 20 rows, 3 late rows dropped"


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text(batch(1).json() + "\n" + batch(2).json()[:30])
    assert read(path) == [batch(1)]


def test_nothing_to_draw_and_nowhere_to_draw_it_are_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no history yet"):
        read(tmp_path / "progress.jsonl")
    (tmp_path / "progress.jsonl").write_text("")
    with pytest.raises(UserError, match="no batch has ended yet"):
        read(tmp_path / "progress.jsonl")
    with pytest.raises(UserError, match=r"expected a name that ends in \.png or \.svg"):
        draw([batch(1)], "x", tmp_path / "x.gif")
