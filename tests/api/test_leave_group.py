"""LeaveGroup."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.leave_group import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import new_group, open_line, stable
from tests.raw_requests import Line


def leave(line: Line, version: int, group: str, member: str) -> Any:
    leavers = [{"member_id": member, "group_instance_id": None, "reason": None}]
    return line.ask(API.key, version, group_id=group, member_id=member, members=leavers)


@pytest.mark.spec("GRP-45")
@pytest.mark.parametrize("version", API.versions)
def test_a_member_leaves_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        member = stable(line, group).member_id
        left = leave(line, version, group, member)
        again = leave(line, version, group, member)
        nowhere = leave(line, version, new_group(), member)
        unnamed = leave(line, version, "", member)
    assert left.error_code is ErrorCode.none
    assert unnamed.error_code is ErrorCode.invalid_group_id
    for reply in (again, nowhere):
        said = reply if version < 3 else reply.members[0]
        assert said.error_code is ErrorCode.unknown_member_id
    if version >= 3:
        assert (left.members[0].member_id, left.members[0].error_code) == (member, ErrorCode.none)
