from __future__ import annotations

import ottla
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.client.admin.hanging_transaction import PRODUCER_ID, leave_hanging


def test_those_that_hang_are_shown(run: Run, cli_broker: Broker, topic: str) -> None:
    leave_hanging(cli_broker.bootstrap_servers, topic)
    [row] = run("transactions", "find-hanging", topic, "--json").json
    assert (row["producer_id"], row["start_offset"]) == (PRODUCER_ID, 0)
    young = run("transactions", "find-hanging", topic, "--older-than", "999999d", "--json")
    assert young.json == []
    assert any(row["topic"] == topic for row in run("transactions", "find-hanging", "--json").json)


def test_a_decided_transaction_that_does_not_end_is_shown_with_what_to_do(
    run: Run, topic: str, stuck: ottla.Producer
) -> None:
    ran = run("transactions", "find-hanging", topic, "--older-than", "0s", "--json")
    [row] = ran.json
    assert (row["topic"], row["partition"], row["state"]) == (topic, 0, "PrepareCommit")
    assert row["transactional_id"] == "stuck"
    assert f"make {topic}-0 writable again" in ran.err
    assert run("transactions", "find-hanging", topic, "--json").json == [], "younger than 15 min"
    elsewhere = run("transactions", "find-hanging", "__transaction_state", "--older-than", "0s")
    assert "stuck" not in elsewhere.out


def test_mistakes_are_said_in_a_line(run: Run) -> None:
    run("transactions", "find-hanging", "--older-than", "x").failed(2, "--older-than 'x'")
    run("transactions", "find-hanging", "nowhere").failed(1, "nowhere")
    run("transactions", "find-hanging", "t:x").failed(2, "TOPIC 't:x'")
