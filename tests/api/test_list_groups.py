"""ListGroups."""

from __future__ import annotations

import pytest

from ottla.api.list_groups import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import commit, new_group, open_line, stable


@pytest.mark.spec("GRP-14")
@pytest.mark.parametrize("version", API.versions)
def test_groups_are_listed_by_state_and_type(ottla_broker: Broker, version: int) -> None:
    busy, empty = new_group(), new_group()
    with open_line(ottla_broker) as line:
        stable(line, busy)
        commit(line, empty)
        everything = line.ask(API.key, version, states_filter=[], types_filter=[])
        stables = line.ask(API.key, version, states_filter=["stable"], types_filter=["CLASSIC"])
        others = line.ask(API.key, version, states_filter=[], types_filter=["share"])
    assert everything.error_code is ErrorCode.none
    types = {group.group_id: group.protocol_type for group in everything.groups}
    assert (types[busy], types[empty]) == ("consumer", "")
    if version >= 4:
        found = {group.group_id: group.group_state for group in stables.groups}
        assert found[busy] == "Stable"
        assert empty not in found
    if version >= 5:
        assert others.groups == ()
        assert {group.group_type for group in stables.groups} == {"classic"}
