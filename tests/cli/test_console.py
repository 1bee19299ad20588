from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO

import pytest

from ottla.cli.console import Table, draw, failures, patience, show, table


def drawn(*rows: tuple[object, ...]) -> list[str]:
    out = StringIO()
    table("Sizes", ("name", "bytes"), rows, out)
    return out.getvalue().splitlines()


def test_a_table_has_its_title_heads_and_rows() -> None:
    lines = drawn(("orders", 12), ("clicks", 1_345))
    assert lines[0].strip() == "Sizes"
    assert any("name" in line and "bytes" in line for line in lines)
    assert any("clicks" in line and "1345" in line for line in lines)


def test_numbers_stand_to_the_right() -> None:
    lines = drawn(("orders", "12"), ("clicks", "1,345.5"))
    [twelve] = [line for line in lines if "orders" in line]
    assert "      12 " in twelve


def test_text_is_shown_as_it_is() -> None:
    assert any("[bold]x[/bold]" in line for line in drawn(("[bold]x[/bold]", 1)))


def test_a_table_without_rows_still_has_its_heads() -> None:
    assert any("bytes" in line for line in drawn())


def test_one_table_is_a_list_in_json_and_several_are_an_object() -> None:
    sizes = Table("Sizes", ("name", "in sync"), [("orders", [1, 2]), ("clicks", None)])
    out = StringIO()
    show(sizes, as_json=True, file=out)
    rows = [{"name": "orders", "in_sync": [1, 2]}, {"name": "clicks", "in_sync": None}]
    assert json.loads(out.getvalue()) == rows
    both = StringIO()
    show(sizes, Table("more-sizes", ("a",), []), as_json=True, file=both)
    assert json.loads(both.getvalue()) == {"sizes": rows, "more_sizes": []}


def test_cells_are_shown_as_people_read_them() -> None:
    out = StringIO()
    rows = [(None, True, (1, 2), {"a": "b"}), ("", False, (), {})]
    show(Table("t", ("none", "flag", "list", "pairs"), rows), as_json=False, file=out)
    cells = [line.split() for line in out.getvalue().splitlines() if line.startswith("│")]
    assert [cell for cell in cells[0] if cell != "│"] == ["-", "yes", "1,2", "a=b"]
    assert [cell for cell in cells[1] if cell != "│"] == ["-", "no", "-", "-"]


def test_an_empty_table_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    show(Table("groups", ("name",), []), as_json=False)
    assert capsys.readouterr().out == "groups: none\n"


def test_a_table_into_a_pipe_is_not_cut() -> None:
    long = "x" * 300
    assert any(long in line for line in drawn((long, 1)))


def test_each_failure_is_a_line_and_names_its_item_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert failures({}) == 0
    assert failures({"a": ValueError("went wrong"), "b": ValueError("b: named")}) == 1
    assert capsys.readouterr().err == "ottla: a: went wrong\nottla: b: named\n"


def test_patience_is_shown_to_people_only(capsys: pytest.CaptureFixture[str]) -> None:
    with patience("waiting") as tell:
        tell(5)
    assert capsys.readouterr().err == ""


def test_patience_begins_after_a_while_and_ends_with_the_work() -> None:
    program = (
        "import sys, time; from ottla.cli import console; console.PATIENCE_S = 0.01\n"
        "assert sys.stderr.isatty()\n"
        "with console.patience('waiting', 4000) as tell:\n"
        "    tell(1234)\n"
        "    end = time.monotonic() + 1\n"
        "    while time.monotonic() < end: pass\n"
    )
    reader, writer = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=writer, stdin=subprocess.DEVNULL, check=False
    )
    shown = os.read(reader, 65_536).decode()
    os.close(reader)
    os.close(writer)
    assert done.returncode == 0
    assert "waiting" in shown
    assert "1,234" in shown
    assert "━" in shown, "a bar, because the total is known"


def on_a_screen(wanted: Table, width: int) -> list[str]:
    out = StringIO()
    draw(wanted, out, width=width)
    return out.getvalue().splitlines()


def test_a_narrow_table_says_what_it_left_out_and_cuts_nothing() -> None:
    member = "consumer-1-0b8f1c2e-3c1d-4c83-9a53-7f4f5d0c9a11"
    columns = ("group", "topic", "partition", "lag", "member", "host")
    wanted = Table("lag", columns, [("billing", "orders", 0, 34, member, "/127.0.0.1")], ("host",))
    for width in (60, 80, 120):
        lines = on_a_screen(wanted, width)
        assert max(map(len, lines)) <= width
        assert not any("…" in line for line in lines)
        assert any("34" in line for line in lines)
    cells = [line.split("│")[5].strip() for line in on_a_screen(wanted, 60) if line[0] == "│"]
    assert "".join(cells) == member
    assert on_a_screen(wanted, 60)[-1] == "(no room for: host; see --json)"


def test_a_table_that_cannot_fit_has_a_line_for_each_cell() -> None:
    wanted = Table("rates", tuple(f"figure{at}" for at in range(9)), [tuple(range(9))])
    lines = on_a_screen(wanted, 40)
    assert max(map(len, lines)) <= 40
    assert any("figure8" in line and "8 │" in line for line in lines)
