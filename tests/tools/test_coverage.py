from __future__ import annotations

from pathlib import Path

import pytest

from tools import coverage

IDS = """# Ids

## 1 Log

- **LOG-01** One thing.
- **LOG-02** Another.
- **LOG-03** A third.

## 2 Groups

- **GRP-01** Groups.
"""
TEST = """import pytest

pytestmark = pytest.mark.spec("LOG-01")

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("LOG-02"))])
def test_x(x): ...
"""


def project(root: Path, *, notes: str, test: str = TEST) -> Path:
    (root / "docs").mkdir()
    (root / "tests" / "log").mkdir(parents=True)
    (root / "docs/spec-ids.md").write_text(IDS)
    (root / "docs/spec-notes.txt").write_text(notes)
    (root / "tests/log/test_x.py").write_text(test)
    return root


def test_the_page_names_the_tests_and_the_reasons_of_each_item(tmp_path: Path) -> None:
    root = project(tmp_path, notes="LOG-03: built otherwise\nGRP-*: later\n")
    assert coverage.main([], root) == 0
    page = (root / "docs/coverage.md").read_text()
    assert "| LOG-01 | `log/test_x.py` |" in page
    assert "| LOG-02 | `log/test_x.py` |" in page
    assert "| LOG-03 | built otherwise |" in page
    assert "| GRP-01 | later |" in page
    assert "| 1 Log | 3 | 2 | 1 | 0 |" in page


def test_a_note_may_leave_its_item_open(tmp_path: Path) -> None:
    root = project(tmp_path, notes="LOG-03: open: nobody has begun\nGRP-*: later\n")
    assert coverage.main([], root) == 0
    page = (root / "docs/coverage.md").read_text()
    assert "| 1 Log | 3 | 2 | 0 | 1 |" in page
    assert "| LOG-03 | open: nobody has begun |" in page


def test_a_mark_in_the_row_of_a_table_counts(tmp_path: Path) -> None:
    table = 'ROWS = [("a", spec("LOG-03")), ("b", spec(*ids))]'
    root = project(tmp_path, notes="LOG-*: no\nGRP-*: later\n", test=table)
    assert coverage.main([], root) == 0
    assert "| LOG-03 | `log/test_x.py` |" in (root / "docs/coverage.md").read_text()


def test_a_page_that_is_current_passes_the_check_and_a_stale_one_fails(tmp_path: Path) -> None:
    root = project(tmp_path, notes="LOG-03: no\nGRP-*: later\n")
    coverage.main([], root)
    assert coverage.main(["--check"], root) == 0
    (root / "tests/log/test_y.py").write_text('@pytest.mark.spec("LOG-03")\ndef test_y(): ...\n')
    assert coverage.main(["--check"], root) == 1


@pytest.mark.parametrize(
    ("notes", "test", "said"),
    [
        ("LOG-*: a\nGRP-*: b\n", '@pytest.mark.spec("LOG-99")\ndef test_x(): ...', "LOG-99"),
        ("LOG-*: a\nGRP-*: b\nNET-01: c\n", TEST, "NET-01"),
        ("GRP-*: b\n", TEST, "LOG-03 has neither a test nor a reason"),
        (
            "LOG-03: shown by LOG-01 and GRP-01\nGRP-*: b\n",
            TEST,
            "LOG-03 points to GRP-01, which no test shows",
        ),
    ],
)
def test_unknown_ids_and_unexplained_items_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], notes: str, test: str, said: str
) -> None:
    assert coverage.main([], project(tmp_path, notes=notes, test=test)) == 1
    assert said in capsys.readouterr().err


def test_a_note_may_speak_for_a_range() -> None:
    assert coverage.read_notes("CFG-009..011: later\n# comment\n") == {
        "CFG-009": "later",
        "CFG-010": "later",
        "CFG-011": "later",
    }


def test_the_projects_own_list_names_each_id_once() -> None:
    items = list(coverage.read_items((coverage.ROOT / "docs/spec-ids.md").read_text()))
    assert len({item.id for item in items}) == len(items) == 1017
