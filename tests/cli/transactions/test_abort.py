from __future__ import annotations

import pytest

import ottla
from ottla.client.admin import OffsetSpec
from ottla.model.ids import TopicPartition
from ottla.testing import Broker
from tests.cli.ottla_program import Run
from tests.cli.transactions.conftest import Begin
from tests.client.admin.hanging_transaction import leave_hanging


def readable(admin: ottla.Admin, topic: str) -> int | None:
    """How far a reader of committed records gets."""
    wanted = {TopicPartition(topic, 0): OffsetSpec.LATEST}
    return admin.list_offsets(wanted, read_committed=True).one().offset


def test_a_transaction_is_aborted_by_its_id(
    run: Run, admin: ottla.Admin, topic: str, begin: Begin
) -> None:
    producer = begin("aborted-1")
    assert readable(admin, topic) == 0
    assert run("transactions", "abort", "aborted-1", "--dry-run").code == 0
    assert readable(admin, topic) == 0
    [row] = run("transactions", "abort", "aborted-1", "--json").json
    assert row["transactional_id"] == "aborted-1"
    assert readable(admin, topic) == 2
    with pytest.raises(ottla.KafkaError):
        producer.commit()


def test_what_a_spark_query_left_prepared_is_aborted_by_its_id(
    run: Run, admin: ottla.Admin, topic: str, begin: Begin
) -> None:
    begin("query.1-sink-0-0-0", two_phase=True)
    begin("query.1-sink-0-1-0", two_phase=True)
    begin("queryX1-sink-0-0-0", two_phase=True)
    begin("query.10-sink-0-0-0", two_phase=True)
    rows = run("transactions", "abort", "--query", "query.1", "--json").json
    assert [row["transactional_id"] for row in rows] == ["query.1-sink-0-0-0", "query.1-sink-0-1-0"]
    states = {one.id: one.state for one in admin.list_transactions()}
    assert states["queryX1-sink-0-0-0"] == states["query.10-sink-0-0-0"] == "Ongoing"
    assert run("transactions", "abort", "--query", "query.1").out == "would abort: none\n"


def test_one_that_hangs_is_aborted_in_its_partition(
    run: Run, admin: ottla.Admin, cli_broker: Broker, topic: str
) -> None:
    leave_hanging(cli_broker.bootstrap_servers, topic)
    words = ("transactions", "abort", "--partition", f"{topic}:0", "--start-offset")
    run(*words, 7).failed(2, "--start-offset 7: no transaction is open there")
    assert "would abort" in run(*words, 0, "--dry-run").out
    assert readable(admin, topic) == 0
    assert run(*words, 0).code == 0
    assert readable(admin, topic) == 2


def test_mistakes_are_said_in_a_line(run: Run) -> None:
    abort = ("transactions", "abort")
    run(*abort).failed(2, "transactional ids, --query, or --partition")
    run(*abort, "x", "--query", "y").failed(2, "give transactional ids")
    run(*abort, "--partition", "t").failed(2, "expected one, such as orders:0")
    run(*abort, "--partition", "t:0").failed(2, "--start-offset is required")
    run(*abort, "--partition", "nowhere:0", "--start-offset", 0).failed(1, "nowhere")


def test_an_unknown_id_is_refused_and_not_created(
    run: Run, admin: ottla.Admin, topic: str, begin: Begin
) -> None:
    begin("known-1")
    said = "typo: no such transactional id; see: ottla transactions list"
    run("transactions", "abort", "typo", "--dry-run").failed(1, said)
    ran = run("transactions", "abort", "typo", "known-1")
    ran.failed(1, said)
    assert "known-1" in ran.out and "Ongoing" in ran.out
    assert readable(admin, topic) == 2, "the one that exists is aborted all the same"
    assert "typo" not in {one.id for one in admin.list_transactions()}
