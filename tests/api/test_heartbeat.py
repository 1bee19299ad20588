"""Heartbeat."""

from __future__ import annotations

import pytest

from ottla.api.heartbeat import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import new_group, open_line, stable


@pytest.mark.spec("GRP-43")
@pytest.mark.parametrize("version", API.versions)
def test_a_member_is_heard_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        member = stable(line, group)
        codes = [
            line.ask(
                API.key,
                version,
                group_id=named,
                generation_id=generation,
                member_id=member.member_id,
                group_instance_id=None,
            ).error_code
            for named, generation in [(group, 1), (group, 2), (new_group(), 1), ("", 1)]
        ]
    assert codes == [
        ErrorCode.none,
        ErrorCode.illegal_generation,
        ErrorCode.unknown_member_id,
        ErrorCode.invalid_group_id,
    ]
