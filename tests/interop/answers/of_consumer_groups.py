"""Groups of the consumer protocol (KIP-848): heartbeats, offsets, describing."""

from __future__ import annotations

from typing import Any, Final

from tests.interop.answers.of_groups import (
    beat,
    commit,
    described,
    fetched,
    identified,
    join,
    leave,
)
from tests.interop.answers.scenario import (
    ALL,
    Ask,
    Assignable,
    Scenario,
    Steps,
    ask,
    scenario,
    topic,
)

MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
OTHER: Final = "AAAAAAAAAAAAAAAAAAAAAg"
EPOCH: Final = {"epoch": "member_epoch"}


def alive(versions: int | range, epoch: int | str = 0, **more: Any) -> Ask:
    """A heartbeat of a member of the scenario's group."""
    usual = {
        "group_id": "$g",
        "member_id": MEMBER,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout": 30_000,
        "subscribed_topic_names": ["$t"],
        "topic_partitions": [],
    }
    return ask("ConsumerGroupHeartbeat", versions, **{**usual, **more})


def still(versions: int | range, epoch: int | str, **more: Any) -> Ask:
    """A heartbeat with nothing new."""
    none = {"subscribed_topic_names": None, "topic_partitions": None, "rebalance_timeout": -1}
    return alive(versions, epoch, **{**none, **more})


def group(versions: int | range = ALL, *names: str, **more: Any) -> Ask:
    return ask("ConsumerGroupDescribe", versions, group_ids=list(names) or ["$g"], **more)


def member_of_one() -> Steps:
    return topic("$t", 2), identified(), Assignable("$t"), alive(1, setup=True, save=EPOCH)


BAD_FIRSTS: Final[dict[str, dict[str, Any]]] = {
    "an empty group id": {"group_id": ""},
    "an empty member id": {"member_id": ""},
    "an empty instance id": {"instance_id": ""},
    "an empty rack": {"rack_id": ""},
    "no rebalance timeout": {"rebalance_timeout": -1},
    "no subscription": {"subscribed_topic_names": None},
    "an empty subscription": {"subscribed_topic_names": []},
    "no partitions": {"topic_partitions": None},
    "an unknown assignor": {"server_assignor": "nobody"},
    "an empty assignor": {"server_assignor": ""},
    "the range assignor": {"server_assignor": "range"},
    "an unknown epoch": {"epoch": 5},
    "a negative epoch": {"epoch": -3},
    "a farewell": {"epoch": -1},
    "a static farewell": {"epoch": -2},
    "a static farewell with an instance": {"epoch": -2, "instance_id": "$i"},
    "an unknown topic": {"subscribed_topic_names": ["$nothing"]},
    "an odd topic": {"subscribed_topic_names": ["a/b"]},
}
SCENARIOS: Final[tuple[Scenario, ...]] = (
    *(
        scenario(
            f"consumer: first with {what}",
            topic("$t"),
            identified(),
            Assignable("$t"),
            alive(ALL, **wrong),
        )
        for what, wrong in BAD_FIRSTS.items()
    ),
    scenario(
        "consumer: a pattern",
        topic("$t"),
        identified(),
        Assignable("$t"),
        alive(1, subscribed_topic_names=None, subscribed_topic_regex="("),
        alive(1, subscribed_topic_names=None, subscribed_topic_regex="t-none-.*"),
        alive(1, subscribed_topic_names=None, subscribed_topic_regex=""),
        group(),
    ),
    scenario(
        "consumer: a member's life",
        topic("$t", 2),
        identified(),
        Assignable("$t"),
        alive(1, save=EPOCH),
        still(ALL, "$epoch"),
        still(ALL, 77),
        still(ALL, 0),
        still(1, "$epoch", member_id=OTHER),
        still(1, "$epoch", group_id="$other"),
        still(1, "$epoch", topic_partitions=[{"topic_id": "$id", "partitions": [0, 1]}]),
        still(1, "$epoch", subscribed_topic_names=["$t", "$nothing"], save=EPOCH),
        group(),
        group(ALL, include_authorized_operations=True),
        commit(9, generation_id_or_member_epoch="$epoch", member_id=MEMBER),
        commit(range(2, 11), generation_id_or_member_epoch=77, member_id=MEMBER, topic_id="$id"),
        commit(range(2, 11), generation_id_or_member_epoch=0, member_id=MEMBER, topic_id="$id"),
        commit(9, generation_id_or_member_epoch="$epoch", member_id="nobody"),
        commit(9),
        fetched(9, 0, member_id=MEMBER, member_epoch="$epoch"),
        fetched(9, 0, member_id=MEMBER, member_epoch=77),
        fetched(9, 0, member_id="nobody", member_epoch="$epoch"),
        described(),
        ask("ListGroups", ALL),
        ask("ListGroups", 5, types_filter=["consumer"], states_filter=["Stable"]),
        ask("DeleteGroups", 2, groups_names=["$g"]),
        join(5, save={"member": "member_id"}),
        beat(4, member_id=MEMBER),
        alive(1, -1),
        group(),
        ask("DeleteGroups", 2, groups_names=["$g"]),
        group(),
    ),
    scenario(
        "consumer: a member that leaves by the classic way",
        member_of_one(),
        leave(5, members=[{"member_id": MEMBER}]),
        still(1, "$epoch"),
        group(),
    ),
    scenario(
        "consumer: two members",
        member_of_one(),
        alive(1, member_id=OTHER, save={"other": "member_epoch"}),
        still(1, "$epoch"),
        group(),
        still(1, "$epoch", topic_partitions=[{"topic_id": "$id", "partitions": [0]}], save=EPOCH),
        still(1, "$other", member_id=OTHER),
        group(),
    ),
    scenario(
        "consumer: a static member",
        topic("$t"),
        identified(),
        Assignable("$t"),
        alive(1, instance_id="$i", save=EPOCH),
        alive(1, instance_id="$i", member_id=OTHER),
        still(1, -2, instance_id="$i"),
        alive(1, instance_id="$i", member_id=OTHER),
        still(1, "$epoch", instance_id="$i"),
        group(),
    ),
    scenario(
        "consumer: groups that are not there",
        group(ALL, "$nobody"),
        group(ALL, ""),
        ask("ConsumerGroupDescribe", ALL, group_ids=[]),
    ),
    scenario(
        "consumer: a classic group",
        join(5, save={"member": "member_id"}, setup=True),
        join(5, member_id="$member", setup=True),
        group(),
        described(5),
        topic("$t"),
        alive(1),
    ),
)
