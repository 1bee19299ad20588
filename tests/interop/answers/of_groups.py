"""Classic groups: joining, offsets, describing, leaving, deleting."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from tests.interop.answers.scenario import (
    ALL,
    Answer,
    Ask,
    Scenario,
    Steps,
    ask,
    scenario,
    since,
    topic,
)

NO_SUCH_ID: Final = UUID("11111111-2222-3333-4444-555555555555")
RANGE: Final = [{"name": "range", "metadata": b"range"}]
BY_ID: Final = since(10)
BY_NAME: Final = range(10)


def join(versions: int | range, **more: Any) -> Ask:
    """A member that wants into the scenario's group."""
    usual = {
        "group_id": "$g",
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "protocol_type": "consumer",
        "protocols": RANGE,
    }
    return ask("JoinGroup", versions, **{**usual, **more})


def sync(versions: int | range, **more: Any) -> Ask:
    usual = {
        "group_id": "$g",
        "generation_id": 1,
        "member_id": "$member",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "$member", "assignment": b"all"}],
    }
    return ask("SyncGroup", versions, **{**usual, **more})


def beat(versions: int | range, **more: Any) -> Ask:
    usual = {"group_id": "$g", "generation_id": 1, "member_id": "$member"}
    return ask("Heartbeat", versions, **{**usual, **more})


def commit(versions: int | range, offset: int = 5, **more: Any) -> Ask:
    """An offset of the scenario's topic, by default from outside any generation."""
    part = {
        "partition_index": more.pop("partition", 0),
        "committed_offset": offset,
        "committed_leader_epoch": more.pop("leader_epoch", -1),
        "committed_metadata": more.pop("metadata", "m"),
    }
    where = {"name": more.pop("name", "$t"), "topic_id": more.pop("topic_id", None)}
    topics = [{**where, "partitions": [part]}]
    usual = {"group_id": "$g", "generation_id_or_member_epoch": -1, "retention_time": -1}
    return ask("OffsetCommit", versions, **{**usual, "topics": topics, **more})


def fetched(versions: int | range, *partitions: int, **more: Any) -> Ask:
    """Committed offsets of the scenario's group."""
    where = {"name": more.pop("name", "$t"), "topic_id": more.pop("topic_id", None)}
    topics: Any = [{**where, "partition_indexes": list(partitions)}] if partitions else None
    topics = more.pop("topics", topics)
    group = more.pop("group_id", "$g")
    member = {
        "member_id": more.pop("member_id", None),
        "member_epoch": more.pop("member_epoch", -1),
    }
    groups = [{"group_id": group, "topics": topics, **member}]
    return ask(
        "OffsetFetch", versions, **{"group_id": group, "topics": topics, "groups": groups, **more}
    )


def leave(versions: int | range, **more: Any) -> Ask:
    usual = {"group_id": "$g", "member_id": "$member", "members": [{"member_id": "$member"}]}
    return ask("LeaveGroup", versions, **{**usual, **more})


def described(versions: int | range = ALL, *groups: str, **more: Any) -> Ask:
    return ask("DescribeGroups", versions, groups=list(groups) or ["$g"], **more)


def joined(version: int = 5, **more: Any) -> Steps:
    """The only member of a stable group."""
    save = {"member": "member_id"}
    return (
        join(version, **more, save=save, setup=True),
        join(version, **{**more, "member_id": "$member"}, save=save, setup=True),
        sync(3, setup=True),
    )


def identified() -> Ask:
    topics = [{"name": "$t"}]
    return ask("Metadata", 12, topics=topics, save={"id": "topics.0.topic_id"}, setup=True)


BAD_JOINS: Final[dict[str, dict[str, Any]]] = {
    "an empty group id": {"group_id": ""},
    "too short a session": {"session_timeout": 1},
    "too long a session": {"session_timeout": 100_000_000},
    "a negative session": {"session_timeout": -1},
    "no protocols": {"protocols": []},
    "no protocol type": {"protocol_type": ""},
    "an unknown member id": {"member_id": "nobody"},
}
BAD_MEMBERS: Final[dict[str, dict[str, Any]]] = {
    "as it should be": {},
    "another generation": {"generation_id": 7},
    "a negative generation": {"generation_id": -1},
    "another member": {"member_id": "nobody"},
    "no member": {"member_id": ""},
    "another group": {"group_id": "$other"},
    "no group": {"group_id": ""},
}
SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        scenario(
            f"a member's life in v{version}",
            topic("$t"),
            join(version, save={"member": "member_id"}),
            join(version, member_id="$member"),
            sync(min(version, 5)),
            beat(min(version, 4)),
            described(min(version, 6)),
            commit(min(version + 2, 9), generation_id_or_member_epoch=1, member_id="$member"),
            fetched(min(version + 1, 9), 0),
            leave(min(version, 5)),
            described(min(version, 6)),
        )
        for version in range(4, 10)
    ),
    *(
        scenario(
            f"a member's life in v{version}",
            topic("$t"),
            join(version, save={"member": "member_id"}),
            sync(version),
            beat(version),
            described(version),
            commit(version + 2, generation_id_or_member_epoch=1, member_id="$member"),
            fetched(version + 1, 0),
            leave(version),
            described(version),
        )
        for version in range(4)
    ),
    *(
        scenario(f"join with {what}", join(ALL, **wrong, once=True))
        for what, wrong in BAD_JOINS.items()
    ),
    scenario(
        "a member that fits in badly",
        joined(),
        join(5, protocol_type="connect"),
        join(5, protocols=[{"name": "other", "metadata": b""}]),
        join(5, member_id="$member", protocols=[{"name": "other", "metadata": b""}]),
        described(),
    ),
    scenario(
        "sync oddly",
        joined(),
        *(sync(ALL, **wrong) for wrong in BAD_MEMBERS.values()),
        sync(5, protocol_type="connect"),
        sync(5, protocol_name="other"),
        sync(5, protocol_type=None, protocol_name=None),
        described(5),
    ),
    scenario("heartbeats", joined(), *(beat(ALL, **wrong) for wrong in BAD_MEMBERS.values())),
    scenario(
        "a static member",
        joined(group_instance_id="$i"),
        described(),
        join(5, group_instance_id="$i", save={"member2": "member_id"}),
        beat(range(3, 5), group_instance_id="$i"),
        beat(range(3, 5), group_instance_id="$i", member_id="$member2"),
        beat(range(3, 5), group_instance_id="$i2"),
        sync(range(3, 6), group_instance_id="$i"),
        commit(
            range(7, 10),
            group_instance_id="$i",
            generation_id_or_member_epoch=1,
            member_id="x",
            name="$n",
        ),
        join(5, group_instance_id="$i", member_id="nobody"),
        leave(range(3, 6), members=[{"member_id": "nobody", "group_instance_id": "$i"}]),
        leave(range(3, 6), members=[{"member_id": "", "group_instance_id": "$i2"}]),
        leave(3, members=[{"member_id": "", "group_instance_id": "$i"}]),
        described(),
    ),
    scenario(
        "two members",
        join(5, save={"member": "member_id"}, setup=True),
        join(5, member_id="$member"),
        sync(3),
        join(5, line="second", save={"other": "member_id"}, setup=True),
        join(5, line="second", member_id="$other", later=True),
        beat(4, line="third", until="rebalance_in_progress", save={}),
        join(5, member_id="$member"),
        Answer("second"),
        described(5),
        sync(3, member_id="$other", generation_id=2, assignments=[], line="second", later=True),
        beat(4, generation_id=2),
        sync(
            3,
            generation_id=2,
            assignments=[
                {"member_id": "$member", "assignment": b"1"},
                {"member_id": "$other", "assignment": b"2"},
            ],
        ),
        Answer("second"),
        described(5),
        leave(
            4, members=[{"member_id": "$member"}, {"member_id": "$other"}, {"member_id": "nobody"}]
        ),
    ),
    scenario(
        "leave oddly",
        joined(),
        leave(ALL, group_id="$other"),
        leave(ALL, group_id=""),
        leave(ALL, member_id="nobody", members=[{"member_id": "nobody"}]),
        leave(ALL, member_id="", members=[{"member_id": ""}]),
        leave(since(3), members=[]),
        leave(3),
        leave(ALL),
    ),
    scenario(
        "offsets from outside",
        topic("$t", 2),
        identified(),
        commit(BY_NAME),
        commit(BY_ID, topic_id="$id"),
        *(commit(9, offset) for offset in (-1, -5, 2**62)),
        commit(9, leader_epoch=3),
        commit(9, metadata=""),
        commit(9, metadata=None),
        commit(BY_NAME, metadata="x" * 4096),
        commit(BY_NAME, metadata="x" * 4097),
        commit(BY_NAME, partition=9),
        commit(9, partition=-1),
        commit(BY_NAME, name="$nothing"),
        commit(BY_ID, topic_id=NO_SUCH_ID),
        commit(BY_ID, topic_id=None),
        commit(9, name="a/b"),
        commit(9, name=""),
        commit(BY_NAME, topics=[]),
        commit(BY_ID, topics=[]),
        commit(BY_NAME, generation_id_or_member_epoch=3, member_id="nobody"),
        commit(9, generation_id_or_member_epoch=3, member_id=""),
        commit(9, generation_id_or_member_epoch=-1, member_id="nobody"),
        fetched(BY_NAME, 0, 1, 9),
        fetched(BY_ID, 0, 1, topic_id="$id"),
        fetched(BY_ID, 0, topic_id=NO_SUCH_ID),
        fetched(range(2, 10)),
        fetched(BY_ID),
        fetched(BY_NAME, 0, name="$nothing"),
        fetched(BY_NAME, 0, group_id="$unknown"),
        fetched(range(2, 10), group_id="$unknown"),
        fetched(BY_NAME, topics=[]),
        fetched(range(7, 10), 0, require_stable=True),
        fetched(9, 0, member_id="nobody", member_epoch=3),
        ask("OffsetFetch", range(8, 10), groups=[]),
        ask(
            "OffsetFetch",
            8,
            groups=[{"group_id": "$g", "topics": None}, {"group_id": "$unknown", "topics": None}],
        ),
        described(),
        ask("ListGroups", ALL),
    ),
    scenario(
        "offsets of a member",
        topic("$t"),
        joined(),
        commit(BY_NAME, generation_id_or_member_epoch=1, member_id="$member"),
        commit(BY_NAME, generation_id_or_member_epoch=7, member_id="$member"),
        commit(BY_NAME, generation_id_or_member_epoch=1, member_id="nobody"),
        commit(BY_NAME, generation_id_or_member_epoch=1, member_id=""),
        commit(BY_NAME),
        fetched(7, 0),
    ),
    scenario(
        "offsets deleted",
        topic("$t", 2),
        joined(),
        commit(7, generation_id_or_member_epoch=1, member_id="$member", setup=True),
        *(
            ask(
                "OffsetDelete",
                0,
                group_id=group,
                topics=[{"name": name, "partitions": [{"partition_index": part}]}],
            )
            for group, name, part in (
                ("$g", "$t", 0),
                ("$g", "$t", 1),
                ("$g", "$t", 9),
                ("$g", "$nothing", 0),
                ("$g", "a/b", 0),
                ("$other", "$t", 0),
                ("", "$t", 0),
            )
        ),
        ask("OffsetDelete", 0, group_id="$g", topics=[]),
        fetched(7, 0, 1),
        leave(3, setup=True),
        ask(
            "OffsetDelete",
            0,
            group_id="$g",
            topics=[{"name": "$t", "partitions": [{"partition_index": 0}]}],
        ),
        fetched(7, 0, 1),
    ),
    scenario(
        "groups deleted",
        topic("$t"),
        joined(),
        ask("DeleteGroups", ALL, groups_names=["$g"]),
        ask("DeleteGroups", ALL, groups_names=["$other"]),
        ask("DeleteGroups", ALL, groups_names=[]),
        leave(3, setup=True),
        ask("DeleteGroups", 2, groups_names=["$g", "$g"]),
        described(),
        commit(9, group_id="$plain", setup=True),
        ask("DeleteGroups", 2, groups_names=["$plain"]),
        fetched(7, 0, group_id="$plain"),
    ),
    scenario(
        "groups that are not there",
        described(ALL, "$nobody"),
        described(5, "$nobody", "$nobody"),
        ask("DescribeGroups", ALL, groups=[]),
        described(since(3), "$nobody", include_authorized_operations=True),
    ),
    scenario(
        "a group without a name",
        topic("$t"),
        commit(9, group_id=""),
        fetched(9, 0, group_id=""),
        described(5, ""),
        ask("DeleteGroups", 2, groups_names=[""]),
    ),
    scenario(
        "a group and what one may do",
        joined(),
        described(since(3), include_authorized_operations=True),
    ),
    scenario(
        "groups listed",
        joined(),
        ask("ListGroups", since(4), states_filter=["Stable"]),
        ask("ListGroups", since(4), states_filter=["stable", "EMPTY"]),
        ask("ListGroups", since(4), states_filter=["Dead"]),
        ask("ListGroups", since(4), states_filter=["Odd"]),
        ask("ListGroups", since(5), types_filter=["classic"]),
        ask("ListGroups", since(5), types_filter=["Consumer"]),
        ask("ListGroups", since(5), types_filter=["odd"]),
        ask("ListGroups", since(5), types_filter=["classic"], states_filter=["Empty"]),
        ask("ListGroups", since(5), types_filter=["share"]),
    ),
)
