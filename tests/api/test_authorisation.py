"""Every API asks the authorizer: who may do nothing is refused as Kafka would, or sees nothing."""

from __future__ import annotations

import pytest

from ottla.api import APIS
from tests.api import allowed, allowed_control, allowed_groups, allowed_records, allowed_txns
from tests.api.allowed import Case

pytestmark = pytest.mark.spec("SEC-04")

BY_THEMSELVES = {
    "DescribeAcls", "CreateAcls", "DeleteAcls", "SaslHandshake", "SaslAuthenticate",
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
    "DescribeDelegationToken",
}  # fmt: skip
"""APIs about the rules themselves, logins and tokens have tests of their own."""
WORLDS: list[tuple[allowed.World, Case]] = [
    *((allowed.data, case) for case in allowed_records.CASES),
    *((allowed.data, case) for case in allowed_groups.CASES),
    *((allowed.data, case) for case in allowed_txns.CASES),
    *((allowed.control, case) for case in allowed_control.CASES),
]


def named(value: object) -> str | None:
    return f"{value.api.name} {value.note}".strip() if isinstance(value, Case) else None


def test_every_api_is_in_the_table() -> None:
    tried = {case.api.name for _, case in WORLDS}
    assert tried == {api.name for api in APIS} - BY_THEMSELVES


@pytest.mark.parametrize(("world", "case"), WORLDS, ids=named)
async def test_an_api_serves_who_has_the_permissions_that_kafka_asks_for(
    world: allowed.World, case: Case
) -> None:
    async with world(case.listener) as broker:
        if case.before is not None:
            await case.before(broker)
        assert await case.ask(broker) == case.at_first
        for permission, seen in case.then:
            broker.may(permission)
            assert await case.ask(broker) == seen, permission
        if case.to_brokers is not None:
            assert await case.ask(broker, broker.trusted) == case.to_brokers
