from __future__ import annotations

from tests.cli.ottla_program import Run


def test_brokers_are_listed_with_their_leaders_and_replicas(run: Run, topic: str) -> None:
    [row] = run("brokers", "list", "--json").json
    assert row["broker"] == 0
    assert row["controller"] is True
    assert row["leaders"] == row["replicas"] >= 1
    assert row["out_of_sync"] == 0


def test_a_broker_is_described_by_its_partitions(run: Run, topic: str) -> None:
    rows = run("brokers", "describe", 0, "--json").json
    [first, *_] = [row for row in rows if row["topic"] == topic]
    assert (first["role"], first["in_sync"], first["replicas"]) == ("leader", True, [0])
    run("brokers", "describe", 7).failed(2, "broker 7", "live brokers: 0")


def test_the_only_broker_is_neither_drained_nor_decommissioned(run: Run, topic: str) -> None:
    drained = run("brokers", "drain", 0)
    assert drained.code == 1
    assert drained.out.startswith("broker 0: 0 leaders moved away, ")
    run("brokers", "decommission", 0).failed(2, "only 0 are left without broker 0")
