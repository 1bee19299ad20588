"""DescribeGroups."""

from __future__ import annotations

import pytest

from ottla.api.describe_groups import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import new_group, open_line, stable


@pytest.mark.spec("GRP-14")
@pytest.mark.parametrize("version", API.versions)
def test_groups_are_described_in_every_version(ottla_broker: Broker, version: int) -> None:
    group, nobody = new_group(), new_group()
    with open_line(ottla_broker) as line:
        member = stable(line, group).member_id
        asked = {"groups": [group, nobody, ""], "include_authorized_operations": False}
        known, unknown, unnamed = line.ask(API.key, version, **asked).groups
    assert (known.group_state, known.protocol_type, known.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    [shown] = known.members
    assert (shown.member_id, shown.client_id, shown.client_host) == (member, "asking", "/127.0.0.1")
    assert shown.member_assignment == b"all of it"
    assert unknown.group_state == "Dead"
    missing = ErrorCode.group_id_not_found if version >= 6 else ErrorCode.none
    assert unknown.error_code is missing
    assert unnamed.error_code is ErrorCode.invalid_group_id
