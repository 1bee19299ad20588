from __future__ import annotations

from tests.cli.ottla_program import Run
from tests.cli.transactions.conftest import Begin


def test_transactional_ids_are_listed_and_filtered(run: Run, begin: Begin) -> None:
    begin("listed-1")
    rows = run("transactions", "list", "--pattern", "listed-.*", "--json").json
    assert [(row["transactional_id"], row["state"]) for row in rows] == [("listed-1", "Ongoing")]
    words = ("--state", "Ongoing", "--longer-than", "1h")
    assert run("transactions", "list", *words, "--json").json == []


def test_mistakes_are_said_in_a_line(run: Run) -> None:
    run("transactions", "list", "--longer-than", "ages").failed(2, "--longer-than 'ages'")
    run("transactions", "list", "--pattern", "(").failed(1, "ottla: ")
