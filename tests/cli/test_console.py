from __future__ import annotations

from io import StringIO

from ottla.cli.console import table


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
