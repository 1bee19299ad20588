"""SyncGroup."""

from __future__ import annotations

import pytest

from ottla.api.sync_group import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import joined, new_group, open_line, sync


@pytest.mark.spec("GRP-41")
@pytest.mark.parametrize("version", API.versions)
def test_the_assignment_comes_back_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        reply = sync(line, group, joined(line, group), version)
    assert (reply.error_code, reply.assignment) == (ErrorCode.none, b"all of it")
    if version >= 5:
        assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")


@pytest.mark.spec("GRP-38", "GRP-39")
@pytest.mark.parametrize("version", API.versions)
def test_refusals_are_said_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        reply = joined(line, group)
        wrong = sync(line, group, reply, version, generation_id=9)
        nobody = sync(line, new_group(), reply, version)
    assert wrong.error_code is ErrorCode.illegal_generation
    assert nobody.error_code is ErrorCode.unknown_member_id


def test_newer_members_must_say_which_protocol_they_follow(ottla_broker: Broker) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        reply = joined(line, group)
        for missing in ("protocol_type", "protocol_name"):
            said = sync(line, group, reply, 5, **{missing: None})
            assert said.error_code is ErrorCode.inconsistent_group_protocol
        assert sync(line, group, reply, 4).error_code is ErrorCode.none
