"""A connection on the fast path obeys ACLs, quotas and the end of its session at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ottla.api import alter_client_quotas
from ottla.api.fast_path.produce import AuthorizedProduce, FastProduce
from ottla.api.produce import API
from ottla.model.errors import ErrorCode
from ottla.security.acl import Kind, Operation, Pattern, Permission, Rule, Rules
from ottla.testing import Broker
from tests.api.acl_requests import AUTHORIZER, EVERYTHING, created, deleted, rule
from tests.fakes.api_side import ApiSide, api_side
from tests.raw_requests import PRODUCE, Line, batch, create_topics, produce_fields

LONG = bytes(200)  # records shorter than this go the general way in compact encodings
WRITE = Rule(
    Kind.TOPIC, "t", Pattern.LITERAL, "User:ANONYMOUS", "*", Operation.WRITE, Permission.ALLOW
)
DENIAL = WRITE._replace(permission=Permission.DENY)


def guard(side: ApiSide, *rules: Rule) -> None:
    side.services.authorizer.in_force = True
    side.services.authorizer.follow(Rules(rules))


async def send(side: ApiSide, **more: Any) -> ErrorCode:
    """Produce one batch; the error code of its partition."""
    fields = produce_fields("t", side.data.batch(LONG), acks=1)
    reply = await side.caller.ask(API, 12, **fields, **more)
    code: ErrorCode = reply.responses[0].partition_responses[0].error_code
    return code


@pytest.mark.spec("SEC-04", "WIRE-12")
async def test_with_an_authorizer_repeated_requests_are_not_decoded() -> None:
    async with api_side() as side:
        await side.data.lead()
        guard(side, WRITE)
        assert await send(side) is ErrorCode.none
        fast = side.caller.peer.answer
        assert isinstance(fast, AuthorizedProduce)
        fast.general = side.caller.peer.answer = fast  # anything handed on would never return
        assert await send(side) is ErrorCode.none


@pytest.mark.spec("SEC-04")
async def test_a_changed_acl_decides_the_next_request() -> None:
    async with api_side() as side:
        await side.data.lead()
        guard(side, WRITE)
        for rules, code in (
            ((WRITE,), ErrorCode.none),
            ((), ErrorCode.topic_authorization_failed),
            ((WRITE,), ErrorCode.none),
            ((WRITE, DENIAL), ErrorCode.topic_authorization_failed),
        ):
            guard(side, *rules)
            for _ in range(3):
                assert await send(side) is code
            is_fast = isinstance(side.caller.peer.answer, AuthorizedProduce)
            assert is_fast is (code is ErrorCode.none)


@pytest.mark.spec("SEC-04")
async def test_acls_of_another_topic_only_make_it_decide_once_more() -> None:
    async with api_side() as side:
        await side.data.lead()
        guard(side, WRITE)
        await send(side)
        first = side.caller.peer.answer
        guard(side, WRITE, WRITE._replace(name="other"))
        assert await send(side) is ErrorCode.none
        second = side.caller.peer.answer
        assert isinstance(second, AuthorizedProduce)
        assert second is not first
        assert await send(side) is ErrorCode.none
        assert side.caller.peer.answer is second


class ExpiredSession:
    has_expired = True


@pytest.mark.spec("SEC-03")
async def test_a_request_that_waited_past_the_end_of_its_session_is_not_remembered() -> None:
    async with api_side() as side:
        await side.data.lead()
        login, side.caller.peer.login = side.caller.peer.login, ExpiredSession()
        await send(side)
        assert side.caller.peer.answer is side.dispatch, "what refuses its requests stays"
        side.caller.peer.login = login
        await send(side)
        assert isinstance(side.caller.peer.answer, FastProduce)


def produced(line: Line) -> tuple[ErrorCode, int]:
    """The error code of a produce request, and its throttle time in milliseconds."""
    reply = line.ask(PRODUCE, 9, **produce_fields("orders", batch("x" * 200), acks=1))
    code: ErrorCode = reply.responses[0].partition_responses[0].error_code
    return code, reply.throttle_time // timedelta(milliseconds=1)


@pytest.mark.spec("SEC-04", "SEC-07")
def test_acls_and_quotas_take_effect_on_the_next_request_of_an_open_connection() -> None:
    settings = AUTHORIZER | {"allow.everyone.if.no.acl.found": "true"}
    denial = rule(operation=Operation.WRITE, permission_type=Permission.DENY)
    with (
        Broker(settings) as broker,
        Line(broker.bootstrap_servers) as producer,
        Line(broker.bootstrap_servers) as admin,
    ):
        create_topics(admin, ["orders"])
        for _ in range(3):
            assert produced(producer) == (ErrorCode.none, 0)
        created(admin, denial)
        assert produced(producer) == (ErrorCode.topic_authorization_failed, 0)
        deleted(admin, EVERYTHING)
        for _ in range(3):
            assert produced(producer) == (ErrorCode.none, 0)
        set_quota(admin, 1.0)
        code, throttle_ms = produced(producer)
        assert code is ErrorCode.none
        assert throttle_ms > 0


def set_quota(admin: Line, value: float) -> None:
    entity = [{"entity_type": "client-id", "entity_name": "asking"}]
    op = {"key": "producer_byte_rate", "value": value, "remove": False}
    reply = admin.ask(
        alter_client_quotas.API.key, 1, entries=[{"entity": entity, "ops": [op]}],
        validate_only=False,
    )  # fmt: skip
    assert reply.entries[0].error_code is ErrorCode.none
