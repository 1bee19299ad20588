"""What each API about groups asks the authorizer for."""

from __future__ import annotations

from typing import Any, Final

from ottla.api import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from ottla.model.errors import ErrorCode as E
from ottla.security.acl import Operation as O
from tests.api.allowed import GROUP_NO, TOPIC_NO, Case, Guarded, cluster, code, first, group, topic

ONE: Final = {"partition_index": 0}
OFFSET: Final = {**ONE, "committed_offset": 5, "committed_metadata": ""}
MEMBER: Final = {"group_id": "g", "member_id": "me", "group_instance_id": None}
COMMIT: Final[dict[str, Any]] = {
    **MEMBER,
    "member_id": "",
    "generation_id_or_member_epoch": -1,
    "topics": [{"name": "t", "partitions": [{**OFFSET, "committed_leader_epoch": -1}]}],
}
BEAT: Final[dict[str, Any]] = {
    "group_id": "g",
    "member_id": "me",
    "member_epoch": 0,
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout": 60_000,
    "subscribed_topic_names": ["t"],
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": [],
}
FETCH_OFFSETS: Final[dict[str, Any]] = {
    "groups": [
        {
            "group_id": "g",
            "member_id": None,
            "member_epoch": -1,
            "topics": [{"name": "t", "partition_indexes": [0]}],
        }
    ],
    "require_stable": False,
}
ALL_OFFSETS: Final = {**FETCH_OFFSETS, "groups": [{**FETCH_OFFSETS["groups"][0], "topics": None}]}


async def commit(broker: Guarded) -> None:
    await broker.trusted.ask(offset_commit.API, 9, **COMMIT)


async def beat(broker: Guarded) -> None:
    await broker.trusted.ask(consumer_group_heartbeat.API, **BEAT)


def offsets(said: Any) -> object:
    [one] = said.groups
    return one.error_code, {t.name: t.partitions[0].error_code for t in one.topics}


CASES: Final = (
    Case(
        offset_commit.API,
        COMMIT,
        first,
        GROUP_NO,
        ((group(O.READ), TOPIC_NO), (topic(O.READ), E.none)),
        version=9,
    ),
    Case(
        offset_fetch.API,
        FETCH_OFFSETS,
        offsets,
        (GROUP_NO, {}),
        (
            (group(O.DESCRIBE), (E.none, {"t": TOPIC_NO})),
            (topic(O.DESCRIBE), (E.none, {"t": E.none})),
        ),
        version=9,
    ),
    Case(
        offset_fetch.API,
        ALL_OFFSETS,
        offsets,
        (GROUP_NO, {}),
        ((group(O.DESCRIBE), (E.none, {})), (topic(O.DESCRIBE), (E.none, {"t": E.none}))),
        "of all topics",
        version=9,
        before=commit,
    ),
    Case(
        join_group.API,
        {
            **MEMBER,
            "member_id": "",
            "session_timeout": 10_000,
            "rebalance_timeout": 10_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
            "reason": None,
        },
        code,
        GROUP_NO,
        ((group(O.READ), E.member_id_required),),
    ),
    Case(
        heartbeat.API,
        {**MEMBER, "generation_id": 1},
        code,
        GROUP_NO,
        ((group(O.READ), E.unknown_member_id),),
    ),
    Case(
        leave_group.API,
        {"group_id": "g", "members": [{**MEMBER, "reason": None}]},
        code,
        GROUP_NO,
        ((group(O.READ), E.none),),
    ),
    Case(
        sync_group.API,
        {
            **MEMBER,
            "generation_id": 1,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [],
        },
        code,
        GROUP_NO,
        ((group(O.READ), E.unknown_member_id),),
    ),
    Case(
        describe_groups.API,
        {"groups": ["g"], "include_authorized_operations": True},
        lambda said: (said.groups[0].error_code, said.groups[0].authorized_operations),
        (GROUP_NO, -(2**31)),
        (
            (group(O.DESCRIBE), (E.none, 1 << O.DESCRIBE)),
            (group(O.DELETE), (E.none, 1 << O.DESCRIBE | 1 << O.DELETE)),
        ),
        version=5,
    ),
    Case(
        list_groups.API,
        {"states_filter": [], "types_filter": []},
        lambda said: [one.group_id for one in said.groups],
        [],
        ((group(O.DESCRIBE), ["g"]),),
        before=commit,
    ),
    Case(
        list_groups.API,
        {"states_filter": [], "types_filter": []},
        lambda said: [one.group_id for one in said.groups],
        [],
        ((cluster(O.DESCRIBE), ["g"]),),
        "by who may describe the cluster",
        before=commit,
    ),
    Case(
        delete_groups.API,
        {"groups_names": ["g"]},
        lambda said: said.results[0].error_code,
        GROUP_NO,
        ((group(O.READ), GROUP_NO), (group(O.DELETE), E.none)),
        before=commit,
    ),
    Case(
        offset_delete.API,
        {"group_id": "g", "topics": [{"name": "t", "partitions": [ONE]}]},
        lambda said: (said.error_code, [t.partitions[0].error_code for t in said.topics]),
        (GROUP_NO, []),
        ((group(O.DELETE), (E.none, [TOPIC_NO])), (topic(O.READ), (E.none, [E.none]))),
        before=commit,
    ),
    Case(
        consumer_group_heartbeat.API,
        BEAT,
        code,
        GROUP_NO,
        ((group(O.READ), TOPIC_NO), (topic(O.DESCRIBE), E.none)),
    ),
    Case(
        consumer_group_describe.API,
        {"group_ids": ["g"], "include_authorized_operations": True},
        lambda said: (said.groups[0].error_code, len(said.groups[0].members)),
        (GROUP_NO, 0),
        ((group(O.DESCRIBE), (TOPIC_NO, 0)), (topic(O.DESCRIBE), (E.none, 1))),
        before=beat,
    ),
)
