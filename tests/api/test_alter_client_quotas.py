"""AlterClientQuotas and DescribeClientQuotas: stored as Kafka stores them, in force everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api import alter_client_quotas, create_partitions, create_topics, delete_topics
from ottla.api import describe_client_quotas as describe
from ottla.model.clock import MonoMs
from ottla.model.errors import ErrorCode
from ottla.security.quotas.entities import DEFAULT, QuotaEntity
from ottla.store.nodes import ConfigNode
from tests.api.handler_client import ask
from tests.api.topic_fields import topic
from tests.fakes.control_plane import Node, control_plane, until

PRODUCE = "producer_byte_rate"


def entry(entity: dict[str, str | None], **values: float | None) -> dict[str, Any]:
    """Null as a name is the default entity, None as a value removes the quota."""
    return {
        "entity": [
            {"entity_type": kind.replace("_", "-"), "entity_name": name}
            for kind, name in entity.items()
        ],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": value is None}
            for key, value in values.items()
        ],
    }


async def alter(node: Node, *entries: dict[str, Any], dry: bool = False) -> list[ErrorCode]:
    asked = {"entries": entries, "validate_only": dry}
    reply = await ask(node, alter_client_quotas.API, asked)
    return [result.error_code for result in reply.entries]


async def described(node: Node, *components: tuple[str, int, str | None], strict: bool) -> Any:
    asked = {
        "components": [
            {"entity_type": kind, "match_type": match_type, "match": match}
            for kind, match_type, match in components
        ],
        "strict": strict,
    }
    reply = await ask(node, describe.API, asked)
    if reply.entries is None:
        return reply.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in found.entity): {
            value.key: value.value for value in found.values
        }
        for found in reply.entries
    }


@pytest.mark.spec("SEC-07", "SEC-10")
async def test_quotas_are_kept_under_kafkas_paths_beside_other_settings() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        secret = ConfigNode({"SCRAM-SHA-256": "salt=x"}).encode()
        await one.store.create("/config/users/alice%20b", secret)
        codes = await alter(
            one,
            entry({"user": "alice b"}, producer_byte_rate=1024.0),
            entry({"user": "alice b", "client-id": None}, request_percentage=12.5),
            entry({"client-id": "app/1"}, consumer_byte_rate=5.0),
            entry({"user": None}, controller_mutation_rate=3.0),
            entry({"ip": "10.0.0.1"}, connection_creation_rate=7.0),
        )
        assert codes == [ErrorCode.none] * 5
        stored = {
            path: dict(ConfigNode.decode(node.data).overrides)
            for path in (
                "/config/users/alice%20b",
                "/config/users/alice%20b/clients/<default>",
                "/config/clients/app%2F1",
                "/config/users/<default>",
                "/config/ips/10.0.0.1",
            )
            if (node := await one.store.get(path)) is not None
        }
        assert list(stored.values()) == [
            {PRODUCE: "1024", "SCRAM-SHA-256": "salt=x"},
            {"request_percentage": "12.5"},
            {"consumer_byte_rate": "5"},
            {"controller_mutation_rate": "3.0"},
            {"connection_creation_rate": "7"},
        ]
        await until(lambda: len(two.quotas.quotas) == 5)
        assert two.quotas.quotas == one.quotas.quotas
        three = await plane.start(3)
        assert three.quotas.quotas == one.quotas.quotas, "read at its start"


async def test_a_removed_quota_is_gone_everywhere_and_the_rest_stays() -> None:
    async with control_plane() as plane:
        one, two = await plane.start(1), await plane.start(2)
        await alter(one, entry({"user": "u"}, producer_byte_rate=1.0, consumer_byte_rate=2.0))
        await until(lambda: two.quotas.in_force)
        await alter(two, entry({"user": "u"}, producer_byte_rate=None))
        assert two.quotas.quotas == {QuotaEntity("u"): {"consumer_byte_rate": 2.0}}
        await until(lambda: one.quotas.quotas == two.quotas.quotas)
        await alter(one, entry({"user": "u"}, consumer_byte_rate=None))
        await until(lambda: not two.quotas.in_force)


async def test_nothing_is_written_where_a_request_is_only_validated() -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        assert await alter(one, entry({"user": "u"}, producer_byte_rate=1.0), dry=True) == [
            ErrorCode.none
        ]
        assert not one.quotas.quotas


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (entry({}, producer_byte_rate=1.0), ErrorCode.invalid_request),
        (entry({"user": ""}, producer_byte_rate=1.0), ErrorCode.invalid_request),
        (entry({"team": "x"}, producer_byte_rate=1.0), ErrorCode.invalid_request),
        (entry({"user": "u", "ip": "10.0.0.1"}, producer_byte_rate=1.0), ErrorCode.invalid_request),
        (entry({"ip": "nowhere"}, connection_creation_rate=1.0), ErrorCode.invalid_request),
        (entry({"user": "u"}, connection_creation_rate=1.0), ErrorCode.invalid_request),
        (entry({"user": "u"}, producer_byte_rate=1.5), ErrorCode.invalid_request),
        (entry({"user": "u"}, producer_byte_rate=-1.0), ErrorCode.invalid_request),
        (entry({"user": "u"}, producer_byte_rate=float("nan")), ErrorCode.invalid_request),
        (entry({"user": "u"}, producer_byte_rate=float("inf")), ErrorCode.invalid_request),
    ],
)
async def test_each_bad_entry_is_refused_and_the_others_are_not(
    bad: dict[str, Any], code: ErrorCode
) -> None:
    async with control_plane() as plane:
        one = await plane.start(1)
        good = entry({"user": "good"}, producer_byte_rate=1.0)
        assert await alter(one, bad, good) == [code, ErrorCode.none]
        assert list(one.quotas.quotas) == [QuotaEntity("good")]


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ((), False, {"u", "uc", "d", "c", "ip"}),
        ((("user", 0, "u"),), False, {"u", "uc"}),
        ((("user", 0, "u"),), True, {"u"}),
        ((("user", 1, None),), False, {"d"}),
        ((("user", 2, None),), False, {"u", "uc", "d"}),
        ((("user", 0, "u"), ("client-id", 2, None)), True, {"uc"}),
        ((("client-id", 2, None),), True, {"c"}),
        ((("ip", 0, "10.0.0.1"),), True, {"ip"}),
        ((("ip", 0, "10.0.0.2"),), False, set()),
        ((("ip", 2, None), ("user", 2, None)), False, ErrorCode.invalid_request),
        ((("team", 2, None),), False, ErrorCode.unsupported_version),
        ((("user", 2, None), ("user", 2, None)), False, ErrorCode.invalid_request),
    ],
)
async def test_filters_select_entities(
    components: tuple[Any, ...], strict: bool, expected: Any
) -> None:
    names = {
        "u": (("user", "u"),),
        "uc": (("user", "u"), ("client-id", "c")),
        "d": (("user", None),),
        "c": (("client-id", "c"),),
        "ip": (("ip", "10.0.0.1"),),
    }
    async with control_plane() as plane:
        one = await plane.start(1)
        one.quotas.follow(
            {
                QuotaEntity("u"): {PRODUCE: 1.0},
                QuotaEntity("u", "c"): {PRODUCE: 2.0},
                QuotaEntity(DEFAULT): {PRODUCE: 3.0},
                QuotaEntity(None, "c"): {PRODUCE: 4.0},
                QuotaEntity(ip="10.0.0.1"): {"connection_creation_rate": 5.0},
            }
        )
        found = await described(one, *components, strict=strict)
        wanted = {names[name] for name in expected} if isinstance(expected, set) else expected
        assert (set(found) if isinstance(found, dict) else found) == wanted


@pytest.mark.parametrize("strict", [True, False])
async def test_changes_of_topics_beyond_the_quota_are_refused_or_throttled(strict: bool) -> None:
    """KIP-599: clients that know the error hear it, older ones are only throttled."""
    async with control_plane() as plane:
        one = await plane.start(1)
        await alter(one, entry({"user": None}, controller_mutation_rate=1.0))
        version = -1 if strict else create_topics.FIRST_STRICT - 1
        asked = {"topics": [topic("a", num_partitions=20)], "timeout": 5_000}
        first = await ask(one, create_topics.API, {**asked, "validate_only": False}, version)
        assert first.topics[0].error_code is ErrorCode.none
        assert bool(first.throttle_time) is not strict
        asked["topics"] = [topic("b")]
        second = await ask(one, create_topics.API, {**asked, "validate_only": False}, version)
        refused = ErrorCode.throttling_quota_exceeded if strict else ErrorCode.none
        assert second.topics[0].error_code is refused
        assert second.throttle_time.total_seconds() >= 9
        more = {"name": "a", "count": 21, "assignments": None}
        asked = {"topics": [more], "timeout": 5_000, "validate_only": False}
        version = -1 if strict else create_partitions.FIRST_STRICT - 1
        third = await ask(one, create_partitions.API, asked, version)
        assert third.results[0].error_code is refused
        asked = {"topic_names": ["a"], "topics": [{"name": "a"}], "timeout": 5_000}
        version = 5 if strict else 4
        fourth = await ask(one, delete_topics.API, asked, version)
        assert fourth.responses[0].error_code is refused
        usage = one.quotas.usage_of("User:x", "y", MonoMs(0)).mutation
        assert usage is not None
        assert usage.limit == 1.0
