"""Groups as tools see them, and their deletion."""

from __future__ import annotations

import pytest

from ottla.coordinator.group import descriptions
from ottla.coordinator.group.classic.heartbeat import MemberIdentity
from ottla.coordinator.group.descriptions import GroupOverview
from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode
from tests.coordinator.group.scene import GROUP, RANGE, Scene, code_of, offset


@pytest.mark.spec("GRP-14")
def test_a_stable_group_is_shown_with_what_its_members_have() -> None:
    scene = Scene()
    [leader] = scene.stable(instance="i")
    shown = descriptions.summary(scene.group)
    assert shown is not None
    assert (shown.state, shown.protocol_type, shown.protocol) == ("Stable", "consumer", "range")
    [member] = shown.members
    assert member == (
        leader.member_id,
        "i",
        "c",
        "/127.0.0.1",
        RANGE.metadata,
        leader.member_id.encode(),
    )
    scene.start_join()
    changing = descriptions.summary(scene.group)
    assert changing is not None
    assert (changing.state, changing.protocol) == ("PreparingRebalance", "")
    assert changing.members[0].assignment == b""
    assert descriptions.summary(None) is None


@pytest.mark.spec("GRP-14")
@pytest.mark.parametrize(
    ("states", "types", "passes"),
    [
        (set(), set(), True),
        ({"empty", "stable"}, set(), True),
        ({"stable"}, set(), False),
        (set(), {"classic"}, True),
        (set(), {"consumer"}, False),
        ({"empty"}, {"share"}, False),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: set[str], types: set[str], passes: bool
) -> None:
    shown = GroupOverview(GROUP, "consumer", "Empty")
    assert descriptions.GroupFilter(states, types).passes(shown) is passes


def test_a_group_without_members_is_deleted_with_its_offsets() -> None:
    scene = Scene()
    scene.commit(offset(5), offset(6, "u"))
    [leader] = scene.stable()
    refused = code_of(descriptions.delete, scene.group, scene.shard.offsets, 0)
    assert refused is ErrorCode.non_empty_group
    scene.leave(MemberIdentity(leader.member_id))
    scene.execute(descriptions.delete(scene.group, scene.shard.offsets, WallMs(0)))
    assert (scene.shard.groups, scene.committed(), scene.committed("u")) == ({}, None, None)
    assert scene.crash().shard.groups == {}
    assert (
        code_of(descriptions.delete, None, scene.shard.offsets, 0) is ErrorCode.group_id_not_found
    )
