from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.table_layout import EDGE, READABLE, fit_columns

COLUMNS = ("group", "topic", "partition", "committed", "lag", "member", "host")
MEMBER = "consumer-1-0b8f1c2e-3c1d-4c83-9a53-7f4f5d0c9a11"
ROW = ("billing", "orders", "0", "1200", "34", MEMBER, "/127.0.0.1")
LEAST = ("host", "member")


def shown(width: int) -> list[str]:
    layout = fit_columns(COLUMNS, [ROW, ROW], LEAST, width)
    return [COLUMNS[at] for at in layout.widths]


def test_on_a_wide_terminal_everything_is_shown_in_full() -> None:
    layout = fit_columns(COLUMNS, [ROW], LEAST, 200)
    assert list(layout.widths) == list(range(7))
    assert layout.widths[5] == len(MEMBER)
    assert layout.dropped == ()


def test_the_least_important_go_first_and_long_text_is_folded() -> None:
    assert shown(100) == list(COLUMNS)
    assert shown(80) == ["group", "topic", "partition", "committed", "lag", "member"]
    assert shown(60) == ["group", "topic", "partition", "committed", "lag"]
    layout = fit_columns(COLUMNS, [ROW], LEAST, 80)
    assert READABLE <= layout.widths[5] < len(MEMBER)
    assert layout.dropped == ("host",)


def test_what_cannot_fit_is_turned_and_loses_nothing() -> None:
    layout = fit_columns(COLUMNS, [ROW], LEAST, 30)
    assert layout.is_turned
    assert list(layout.widths) == list(range(7))


def test_a_table_without_rows_has_room_for_its_headings() -> None:
    assert fit_columns(("replication factor",), [], (), 40).widths == {0: len("replication factor")}


@given(
    st.lists(st.lists(st.text("ab 1,", max_size=40), min_size=3, max_size=3), max_size=4),
    st.integers(10, 120),
)
def test_no_table_is_wider_than_its_terminal(rows: list[list[str]], width: int) -> None:
    layout = fit_columns(("name", "two words", "n"), rows, ("two words",), width)
    if not layout.is_turned:
        assert sum(one + EDGE for one in layout.widths.values()) + 1 <= width
        assert 0 in layout.widths and 2 in layout.widths
