"""Access rules where no authorizer is set, quotas, SCRAM, and what is not offered yet."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.answers.scenario import ALL, Ask, Scenario, ask, scenario

RULE: Final = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3,
    "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip
FILTER: Final[dict[str, Any]] = {
    "resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1,
    "resource_name_filter": None, "principal_filter": None, "host_filter": None,
}  # fmt: skip


def quota(entity: dict[str, str], *values: tuple[str, float | None], **more: Any) -> Ask:
    """Quotas of an entity set, or removed where a value is None."""
    named = [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()]
    ops = [{"key": k, "value": v or 0.0, "remove": v is None} for k, v in values]
    entry = {"entity": named, "ops": ops}
    return ask("AlterClientQuotas", ALL, **{"entries": [entry], "validate_only": False, **more})


def quotas(entity: dict[str, str], *, strict: bool = False) -> Ask:
    components = [{"entity_type": k, "match_type": 0, "match": name} for k, name in entity.items()]
    return ask("DescribeClientQuotas", ALL, components=components, strict=strict)


def credential(name: str, *, mechanism: int = 1, iterations: int = 4096) -> Ask:
    new = {
        "name": name, "mechanism": mechanism, "iterations": iterations,
        "salt": b"salt", "salted_password": b"p" * 32,
    }  # fmt: skip
    return ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[new])


def no_credential(name: str, *, mechanism: int = 1) -> Ask:
    gone = {"name": name, "mechanism": mechanism}
    return ask("AlterUserScramCredentials", 0, deletions=[gone], upsertions=[])


def users(*names: str) -> Ask:
    return ask("DescribeUserScramCredentials", 0, users=[{"name": name} for name in names])


SCENARIOS: Final[tuple[Scenario, ...]] = (
    scenario(
        "access rules without an authorizer",
        ask("DescribeAcls", ALL, **FILTER),
        ask("DescribeAcls", ALL, **{**FILTER, "resource_type_filter": 0}),
        ask("CreateAcls", ALL, creations=[RULE]),
        ask("CreateAcls", ALL, creations=[]),
        ask("CreateAcls", ALL, creations=[RULE, RULE]),
        ask("DeleteAcls", ALL, filters=[FILTER]),
        ask("DeleteAcls", ALL, filters=[]),
    ),
    scenario(
        "quotas of clients",
        ask("DescribeClientQuotas", ALL, components=[], strict=False),
        ask("AlterClientQuotas", ALL, entries=[], validate_only=True),
        quota({"client-id": "$c"}, ("consumer_byte_rate", 1000.0), validate_only=True),
        quotas({"client-id": "$c"}),
        quota({"client-id": "$c"}, ("consumer_byte_rate", 1000.0)),
        quotas({"client-id": "$c"}),
        quotas({"client-id": "$c"}, strict=True),
        quotas({"user": "$c"}),
        quota({"user": "$u", "client-id": "$c"}, ("producer_byte_rate", 5.5)),
        quotas({"user": "$u", "client-id": "$c"}, strict=True),
        quotas({"user": "$u"}, strict=True),
        quota({"user": "$u"}, ("request_percentage", 50.0), ("controller_mutation_rate", 3.0)),
        quotas({"user": "$u"}, strict=True),
        quota({"client-id": "$c"}, ("consumer_byte_rate", None)),
        quotas({"client-id": "$c"}, strict=True),
        quota({"client-id": "$c"}, ("consumer_byte_rate", None)),
        quota({"user": "$u", "client-id": "$c"}, ("producer_byte_rate", None)),
        quota({"user": "$u"}, ("request_percentage", None), ("controller_mutation_rate", None)),
        quotas({"user": "$u"}),
    ),
    scenario(
        "quotas that cannot be",
        quota({"client-id": "$c"}, ("no_such_rate", 1.0)),
        quota({"client-id": "$c"}, ("consumer_byte_rate", 0.0)),
        quota({"client-id": "$c"}, ("consumer_byte_rate", -1.0)),
        quota({"client-id": "$c"}, ("consumer_byte_rate", 1.5)),
        quota({"no-such": "$c"}, ("consumer_byte_rate", 1.0)),
        quota({}, ("consumer_byte_rate", 1.0)),
        quota({"ip": "127.0.0.1"}, ("consumer_byte_rate", 1.0)),
        quota({"ip": "not an address"}, ("connection_creation_rate", 1.0)),
        quotas({"no-such": "$c"}),
        quotas({"": "$c"}),
    ),
    scenario(
        "SCRAM credentials",
        ask("DescribeUserScramCredentials", 0, users=None),
        ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[]),
        credential("$u"),
        users("$u"),
        credential("$u", mechanism=2),
        users("$u"),
        credential("$u", iterations=5000),
        users("$u"),
        users("$u", "$u"),
        users("$nobody"),
        users("$u", "$nobody"),
        no_credential("$u"),
        no_credential("$u"),
        no_credential("$u", mechanism=2),
        users("$u"),
    ),
    scenario(
        "SCRAM credentials that cannot be",
        credential("$u", mechanism=0),
        credential("$u", mechanism=7),
        credential("$u", iterations=1),
        credential("$u", iterations=4095),
        credential("$u", iterations=16385),
        credential(""),
        no_credential(""),
        no_credential("$u", mechanism=0),
        no_credential("$u", mechanism=7),
        no_credential("$u"),
        users(""),
    ),
    scenario(
        "delegation tokens",
        *(ask("DescribeDelegationToken", version, owners=None) for version in (1, 2, 3)),
        *(
            ask("CreateDelegationToken", version, renewers=[], max_lifetime=1000)
            for version in (1, 2, 3)
        ),
        *(ask("RenewDelegationToken", version, hmac=b"x", renew_period=1) for version in (1, 2)),
        *(
            ask("ExpireDelegationToken", version, hmac=b"x", expiry_time_period=1)
            for version in (1, 2)
        ),
    ),
    scenario("share groups", ask("ShareGroupDescribe", 1, group_ids=["$g"])),
    scenario("streams groups", ask("StreamsGroupDescribe", 0, group_ids=["$g"])),
)
