from __future__ import annotations

from tests.cli.ottla_program import Run
from tests.cli.transactions.conftest import Begin


def test_a_transaction_is_shown_with_its_partitions(run: Run, begin: Begin, topic: str) -> None:
    begin("described-1")
    [row] = run("transactions", "describe", "described-1", "--json").json
    assert (row["state"], row["partitions"], row["timeout_ms"]) == (
        "Ongoing",
        [f"{topic}-0"],
        60_000,
    )
    assert row["started"].endswith("Z")


def test_one_for_a_two_phase_commit_never_times_out(run: Run, begin: Begin) -> None:
    begin("described-2", two_phase=True)
    [row] = run("transactions", "describe", "described-2", "--json").json
    assert row["timeout_ms"] == "never"


def test_an_id_that_is_not_known_is_named(run: Run) -> None:
    run("transactions", "describe", "nobody").failed(1, "nobody: transactional id not found")
    run("transactions", "describe").failed(2, "TRANSACTIONAL_ID")
