"""JoinGroup."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.api.join_group import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import join, joined, new_group, open_line


@pytest.mark.spec("GRP-15", "GRP-28")
@pytest.mark.parametrize("version", API.versions)
def test_a_member_joins_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        first = join(line, group, version)
        if version >= 4:
            assert first.error_code is ErrorCode.member_id_required
            assert first.member_id.startswith("asking-")
            first = join(line, group, version, first.member_id)
        assert (first.error_code, first.generation_id) == (ErrorCode.none, 1)
        assert first.leader == first.member_id
        assert first.protocol_name == "range"
        assert [member.member_id for member in first.members] == [first.member_id]


@pytest.mark.spec("GRP-23", "GRP-24", "GRP-28")
@pytest.mark.parametrize("version", API.versions)
def test_refusals_are_said_in_every_version(ottla_broker: Broker, version: int) -> None:
    with open_line(ottla_broker) as line:
        nameless = join(line, "", version)
        codes = [
            nameless.error_code,
            join(line, new_group(), version, session_timeout=5).error_code,
            join(line, new_group(), version, protocols=[]).error_code,
            join(line, new_group(), version, "stranger").error_code,
        ]
    assert codes == [
        ErrorCode.invalid_group_id,
        ErrorCode.invalid_session_timeout,
        ErrorCode.inconsistent_group_protocol,
        ErrorCode.unknown_member_id,
    ]
    assert nameless.protocol_name == (None if version >= 7 else "")


@pytest.mark.spec("GRP-48")
@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_needs_no_extra_round(ottla_broker: Broker, version: int) -> None:
    with open_line(ottla_broker) as line:
        reply = join(line, new_group(), version, group_instance_id="name")
        assert (reply.error_code, reply.generation_id) == (ErrorCode.none, 1)
        assert reply.member_id.startswith("name-")
        assert reply.members[0].group_instance_id == "name"


@pytest.mark.spec("GRP-16")
def test_any_type_of_protocol_may_be_used(ottla_broker: Broker) -> None:
    with open_line(ottla_broker) as line:
        asked: dict[str, Any] = {
            "protocol_type": "connect",
            "protocols": [{"name": "compatible", "metadata": b""}],
        }
        reply = joined(line, new_group(), **asked)
        assert (reply.protocol_type, reply.protocol_name) == ("connect", "compatible")
