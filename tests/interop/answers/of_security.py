"""Access rules where no authorizer is set, and what is not offered yet."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.answers.scenario import ALL, Scenario, ask, scenario

RULE: Final = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3,
    "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip
FILTER: Final[dict[str, Any]] = {
    "resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1,
    "resource_name_filter": None, "principal_filter": None, "host_filter": None,
}  # fmt: skip
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
        ask("DescribeClientQuotas", 1, components=[], strict=False),
        ask("AlterClientQuotas", 1, entries=[], validate_only=True),
    ),
    scenario(
        "SCRAM credentials",
        ask("DescribeUserScramCredentials", 0, users=None),
        ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[]),
    ),
    scenario(
        "delegation tokens",
        ask("DescribeDelegationToken", 3, owners=None),
        ask("CreateDelegationToken", 3, renewers=[], max_lifetime=1000),
    ),
    scenario("share groups", ask("ShareGroupDescribe", 1, group_ids=["$g"])),
    scenario("streams groups", ask("StreamsGroupDescribe", 0, group_ids=["$g"])),
    scenario(
        "what brokers say to each other",
        ask("LeaderAndIsr", 5),
        ask("StopReplica", 3),
        ask("UpdateMetadata", 7),
        ask("ControlledShutdown", 3),
    ),
)
