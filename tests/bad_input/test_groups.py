"""What members of groups may get wrong, each with the code a client acts on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import commit, join, joined, new_group, open_line, stable, sync
from tests.raw_requests import Line

E = ErrorCode
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
DESCRIBE_GROUPS: Final = 15
DELETE_GROUPS: Final = 42
OFFSET_FETCH: Final = 9
OFFSET_DELETE: Final = 47

BAD_NAMES: Final = ["a\0b", "a\nb", "\x1b[31mred", "x" * 32_000, "ümläut"]


@pytest.fixture(scope="module")
def small() -> Iterator[Broker]:
    """A broker on which two members are a full group."""
    with Broker({"group.max.size": "2", "group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture
def line(small: Broker) -> Iterator[Line]:
    with open_line(small) as opened:
        yield opened


JOINS: Final[dict[str, tuple[dict[str, Any], ErrorCode]]] = {
    "no group": ({"group_id": ""}, E.invalid_group_id),
    "a session that is too short": ({"session_timeout": 5_999}, E.invalid_session_timeout),
    "a session that is too long": ({"session_timeout": 1_800_001}, E.invalid_session_timeout),
    "a session of nothing": ({"session_timeout": 0}, E.invalid_session_timeout),
    "a negative session": ({"session_timeout": -1}, E.invalid_session_timeout),
    "no protocols": ({"protocols": []}, E.inconsistent_group_protocol),
    "no type": ({"protocol_type": ""}, E.inconsistent_group_protocol),
    "a member nobody knows": ({"member_id": "stranger"}, E.unknown_member_id),
}


@pytest.mark.spec("GRP-24", "GRP-28")
@pytest.mark.parametrize("wrong", JOINS)
def test_a_join_that_cannot_be_is_refused(line: Line, wrong: str) -> None:
    fields, code = JOINS[wrong]
    group, member = fields.get("group_id", new_group()), fields.get("member_id", "")
    others = {key: value for key, value in fields.items() if key not in ("group_id", "member_id")}
    assert join(line, group, member=member, **others).error_code is code


@pytest.mark.spec("GRP-30")
def test_a_member_with_other_protocols_than_the_group_is_refused(line: Line) -> None:
    group = new_group()
    stable(line, group)
    other = [{"name": "other", "metadata": b""}]
    assert joined(line, group, protocols=other).error_code is E.inconsistent_group_protocol
    assert joined(line, group, protocol_type="connect").error_code is E.inconsistent_group_protocol


@pytest.mark.spec("GRP-26")
def test_a_full_group_takes_nobody(line: Line, small: Broker) -> None:
    group = new_group()
    first = joined(line, group)
    with open_line(small) as second:
        # A member that waits for the first to come back counts as one.
        waiting = join(second, group).member_id
        second.send_request(
            11, 9, group_id=group, session_timeout=10_000, rebalance_timeout=10_000,
            member_id=waiting, group_instance_id=None, protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}], reason=None,
        )  # fmt: skip
        assert join(line, group, member=first.member_id).error_code is E.none
        assert second.receive() is not None
        with open_line(small) as third:
            reply = joined(third, group)
            assert reply.error_code is E.group_max_size_reached


@pytest.mark.parametrize("group", BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_any_text_may_name_a_group(line: Line, group: str) -> None:
    """It is a key, never a path: nothing of it is interpreted anywhere."""
    assert commit(line, group) is E.none
    described = line.ask(DESCRIBE_GROUPS, 5, groups=[group], include_authorized_operations=False)
    assert [(one.group_id, one.error_code) for one in described.groups] == [(group, E.none)]


def heartbeat(line: Line, group: str, generation: int, member: str) -> ErrorCode:
    code: ErrorCode = line.ask(
        HEARTBEAT, 4, group_id=group, generation_id=generation, member_id=member,
        group_instance_id=None,
    ).error_code  # fmt: skip
    return code


@pytest.mark.spec("GRP-43")
def test_a_heartbeat_of_the_wrong_generation_member_or_group_is_refused(line: Line) -> None:
    group = new_group()
    member = stable(line, group).member_id
    assert heartbeat(line, group, 1, member) is E.none
    for generation in (0, 2, -1, 2**31 - 1):
        assert heartbeat(line, group, generation, member) is E.illegal_generation
    assert heartbeat(line, group, 1, "stranger") is E.unknown_member_id
    assert heartbeat(line, new_group(), 1, member) is E.unknown_member_id
    assert heartbeat(line, "", 1, member) is E.invalid_group_id


@pytest.mark.spec("GRP-38")
def test_a_sync_of_the_wrong_generation_member_or_protocol_is_refused(line: Line) -> None:
    group = new_group()
    reply = joined(line, group)
    for fields, code in (
        ({"generation_id": 7}, E.illegal_generation),
        ({"member_id": "stranger"}, E.unknown_member_id),
        ({"protocol_name": "other"}, E.inconsistent_group_protocol),
        ({"protocol_type": "connect"}, E.inconsistent_group_protocol),
    ):
        assert sync(line, group, reply, **fields).error_code is code
    assert sync(line, group, reply).error_code is E.none


@pytest.mark.spec("GRP-60", "GRP-61", "GRP-64")
def test_a_commit_that_cannot_be_is_refused(line: Line) -> None:
    group = new_group()
    member = stable(line, group).member_id
    mine = {"member_id": member, "generation_id_or_member_epoch": 1}
    assert commit(line, group, **mine) is E.none
    assert commit(line, group, metadata="m" * 4_096, **mine) is E.none
    assert commit(line, group, metadata="m" * 4_097, **mine) is E.offset_metadata_too_large
    assert commit(line, group, partition=99, **mine) is E.unknown_topic_or_partition
    assert commit(line, group, topic="no-such", **mine) is E.unknown_topic_or_partition
    older = {**mine, "generation_id_or_member_epoch": 0}
    assert commit(line, group, **older) is E.illegal_generation
    assert commit(line, group, **{**mine, "member_id": "stranger"}) is E.unknown_member_id
    assert commit(line, group) is E.unknown_member_id  # as if the group had no members
    assert commit(line, "") is E.invalid_group_id


@pytest.mark.spec("GRP-44", "GRP-60")
def test_a_member_that_stalled_past_a_rebalance_cannot_commit(line: Line, small: Broker) -> None:
    """As one whose poll takes longer than max.poll.interval.ms: it left, others went on."""
    group = new_group()
    staller = stable(line, group)
    leaving = [{"member_id": staller.member_id, "group_instance_id": None, "reason": None}]
    with open_line(small) as other:
        said = other.ask(LEAVE_GROUP, 5, group_id=group, members=leaving)
        assert said.members[0].error_code is E.none
        generation = stable(other, group).generation_id
        assert generation > 1
        late = {"member_id": staller.member_id, "generation_id_or_member_epoch": 1}
        assert commit(line, group, **late) is E.unknown_member_id
        newer = {**late, "generation_id_or_member_epoch": generation}
        assert commit(line, group, **newer) is E.unknown_member_id


@pytest.mark.spec("GRP-45")
def test_who_is_not_there_cannot_leave(line: Line) -> None:
    group = new_group()
    stable(line, group)
    strangers = [
        {"member_id": "stranger", "group_instance_id": None, "reason": None},
        {"member_id": "", "group_instance_id": "nobody", "reason": None},
    ]
    said = line.ask(LEAVE_GROUP, 5, group_id=group, members=strangers)
    assert {one.error_code for one in said.members} == {E.unknown_member_id}


@pytest.mark.spec("GRP-69")
def test_a_group_with_members_keeps_itself_and_its_offsets(line: Line) -> None:
    group, nobody = new_group(), new_group()
    stable(line, group)
    said = line.ask(DELETE_GROUPS, 2, groups_names=[group, nobody, ""])
    assert [one.error_code for one in said.results] == [
        E.non_empty_group,
        E.group_id_not_found,
        E.invalid_group_id,
    ]
    topics = [{"name": "group-apis", "partitions": [{"partition_index": 1}]}]
    said = line.ask(OFFSET_DELETE, 0, group_id=nobody, topics=topics)
    assert said.error_code is E.group_id_not_found
