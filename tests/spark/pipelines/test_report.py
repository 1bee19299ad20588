"""A history becomes a picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.progress import QueryProgress
from ottla.spark.pipelines.report import by_query, draw, read
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
