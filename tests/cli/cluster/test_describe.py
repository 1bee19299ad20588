from __future__ import annotations

from ottla.testing import Broker
from tests.cli.ottla_program import Run


def test_the_cluster_is_shown_with_its_brokers_and_features(run: Run, cli_broker: Broker) -> None:
    shown = run("cluster", "describe", "--json").json
    assert shown["cluster"][0]["controller"] == 0
    [broker] = shown["brokers"]
    assert broker["address"] == cli_broker.bootstrap_servers
    assert broker["directories"] == [str(cli_broker.data_dir)]
    assert "transaction.version" in {row["feature"] for row in shown["features"]}
    assert "brokers" in run("cluster", "describe").out
    run("cluster", "describe", "--nonsense").failed(2, "--nonsense")
