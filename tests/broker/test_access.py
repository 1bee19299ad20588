"""A broker that has access rules: restarted with them, and asked by those they concern."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from ottla.model.errors import ErrorCode
from ottla.security.acl import CLUSTER_NAME, Kind, Operation
from ottla.testing import Broker
from tests.api.acl_requests import AUTHORIZER, OPEN, created, describe_reply, rule
from tests.api.consumer_member import beat
from tests.raw_requests import INIT_PRODUCER_ID, Line, batch, create_topics, produced

FIND_COORDINATOR: Final = 10
NOT_THERE_YET: Final = (ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress)


def once_loaded(ask: Callable[[], Any]) -> Any:
    """What a coordinator says when it is there."""
    while True:
        reply = ask()
        if reply.error_code not in NOT_THERE_YET:
            return reply


@pytest.mark.spec("SEC-03", "SEC-04")
def test_rules_outlive_the_broker_and_hold_for_a_client_that_is_no_super_user(
    tmp_path: Path,
) -> None:
    cluster = {"resource_type": Kind.CLUSTER, "resource_name": CLUSTER_NAME}
    with Broker(OPEN, data_dir=tmp_path) as broker, Line(broker.bootstrap_servers) as line:
        create_topics(line, ["orders", "secrets"])
        write, here = rule(operation=Operation.WRITE), {"host": "127.0.0.1"}
        assert created(line, write | here, rule() | {"host": "10.1.2.3"}) == [ErrorCode.none] * 2
    with Broker(AUTHORIZER, data_dir=tmp_path) as broker, Line(broker.bootstrap_servers) as line:
        assert produced(line, "orders", batch("more")).error_code is ErrorCode.none
        refused = produced(line, "secrets", batch("no"))
        assert refused.error_code is ErrorCode.topic_authorization_failed
        assert created(line, rule(**cluster)) == [ErrorCode.cluster_authorization_failed]
        reply = describe_reply(line)
        assert reply.error_code is ErrorCode.cluster_authorization_failed


@pytest.mark.spec("SEC-04")
def test_a_pattern_stands_for_topics_that_the_member_may_see() -> None:
    def assigned_partitions(line: Line, group: str) -> int:
        how: dict[str, Any] = {
            "subscribed_topic_names": None,
            "subscribed_topic_regex": "orders|secrets",
        }
        reply = once_loaded(lambda: beat(line, group, **how))
        assert reply.error_code is ErrorCode.none
        return len(reply.assignment.topic_partitions)

    settings = AUTHORIZER | {"allow.everyone.if.no.acl.found": "true"}
    with Broker(settings) as broker, Line(broker.bootstrap_servers) as line:
        create_topics(line, ["orders", "secrets"])
        line.ask(FIND_COORDINATOR, 4, key_type=0, coordinator_keys=["all"])
        assert assigned_partitions(line, "all") == 2
        secret = rule(resource_name="secrets", principal="User:somebody")
        assert created(line, secret) == [ErrorCode.none]
        assert assigned_partitions(line, "some") == 1


@pytest.mark.spec("TXN-29", "SEC-04")
def test_two_phase_commit_is_for_those_who_may() -> None:
    def initialised(line: Line, *, two_phase: bool) -> object:
        named = {"transactional_id": "pay", "transaction_timeout": 60_000}
        nobody = {"producer_id": -1, "producer_epoch": -1}
        how = {"enable2_pc": two_phase, "keep_prepared_txn": False}
        fields = named | nobody | how
        return once_loaded(lambda: line.ask(INIT_PRODUCER_ID, 6, **fields)).error_code

    mine = {"resource_type": Kind.TRANSACTIONAL_ID, "resource_name": "pay"}
    settings = AUTHORIZER | {"allow.everyone.if.no.acl.found": "true"}
    with Broker(settings) as broker, Line(broker.bootstrap_servers) as line:
        line.ask(FIND_COORDINATOR, 4, key_type=1, coordinator_keys=["pay"])
        assert created(line, rule(**mine, operation=Operation.WRITE)) == [ErrorCode.none]
        assert initialised(line, two_phase=False) is ErrorCode.none
        refused = ErrorCode.transactional_id_authorization_failed
        assert initialised(line, two_phase=True) is refused
        permit = rule(**mine, operation=Operation.TWO_PHASE_COMMIT)
        assert created(line, permit) == [ErrorCode.none]
        assert initialised(line, two_phase=True) is ErrorCode.none
