from __future__ import annotations

import pytest

import ottla
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.transactions.conftest import Begin, begin, stuck  # noqa: F401 - fixtures
from tests.client.admin.hanging_transaction import leave_hanging


@pytest.fixture
def doctor(run: Run, cli_broker: Broker) -> Run:
    at = f"0=127.0.0.1:{cli_broker.metrics_port}"
    return lambda *words: run("doctor", "--metrics", at, *words)


def test_what_each_client_negotiated_is_shown(doctor: Run) -> None:
    [client] = [row for row in doctor("--json").json["clients"] if row["client"] == "ottla"]
    assert "Metadata 13" in client["speaks"]
    assert client["connections"] >= 1
    assert "ottla" in doctor().out


def test_prepared_and_hanging_transactions_are_found_with_what_to_do(
    doctor: Run,
    cli_broker: Broker,
    topic: str,
    begin: Begin,  # noqa: F811
) -> None:
    begin("prepared-for-ever", two_phase=True)
    leave_hanging(cli_broker.bootstrap_servers, topic)
    found = {row["subject"]: row for row in doctor("--json").json["findings"]}
    assert "ottla transactions abort prepared-for-ever" in found["prepared-for-ever"]["what_to_do"]
    assert "--start-offset 1" in found[f"{topic}-0"]["what_to_do"]


def test_a_decided_transaction_that_does_not_end_is_found_with_what_to_do(
    doctor: Run,
    topic: str,
    stuck: ottla.Producer,  # noqa: F811
) -> None:
    found = {row["subject"]: row for row in doctor("--json").json["findings"]}
    assert "PrepareCommit" in found["stuck"]["what"]
    assert f"make {topic}-0 writable again" in found["stuck"]["what_to_do"]


def test_mistakes_are_said_in_a_line(run: Run) -> None:
    run("doctor", "--metrics", "9404").failed(2, "--metrics '9404': expected key=value")
    run("doctor", "--metrics", "a=b").failed(2, "expected ID=HOST:PORT")
