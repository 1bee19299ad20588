from __future__ import annotations

from tests.cli.ottla_program import Run


def test_a_cluster_that_is_well_says_so(run: Run, topic: str) -> None:
    ran = run("cluster", "health")
    assert ran.code == 0
    assert ran.out.startswith("healthy: 1 broker, ")
    assert run("cluster", "health", "--json").json == []
    run("cluster", "health", "now").failed(2, "now")
