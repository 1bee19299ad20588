from __future__ import annotations

import ottla
from ottla.spark.pipelines.dlq.letters import REASON_HEADER, TOPIC_HEADER
from ottla.testing import Broker
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run


def test_letters_go_back_and_the_rest_is_counted(
    run: Run, admin: ottla.Admin, cli_broker: Broker
) -> None:
    dead, origin = make_topic(admin), make_topic(admin)
    with ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer:
        for reason in ("no page", "no page", "nobody"):
            told = [(TOPIC_HEADER, origin.encode()), (REASON_HEADER, reason.encode())]
            producer.send(dead, b"v", headers=told)
    planned = run("pipeline", "replay-dlq", dead, "--dry-run", "--json").json
    assert [(row["reason"], row["records"]) for row in planned] == [("no page", 2), ("nobody", 1)]
    sent = run("pipeline", "replay-dlq", dead, "--reason", "no page")
    assert sent.code == 0
    assert origin in sent.out
    assert "1 record with another reason, left for a later replay" in sent.out
    rest = run("pipeline", "replay-dlq", dead, "--json").json
    assert rest == [{"topic": origin, "reason": "nobody", "records": 1}]
    assert run("pipeline", "replay-dlq", dead, "--json").json == []


def test_a_topic_that_is_not_there_is_said_in_one_line(run: Run) -> None:
    missing = run("pipeline", "replay-dlq", "no-such-topic")
    assert missing.code != 0
    assert "no-such-topic" in missing.err
    assert "Traceback" not in missing.err
