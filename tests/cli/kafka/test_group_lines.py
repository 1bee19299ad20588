from __future__ import annotations

import re

import pytest

from ottla.cli.groups.lag import PartitionLag
from ottla.cli.kafka import group_lines
from ottla.client.admin import BrokerInfo, Group, GroupListing, GroupMember
from ottla.model.ids import TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
MEMBER = GroupMember("member-0123456789-long", "steady", "client", "/127.0.0.1", (B, A))
GROUP = Group("g", "classic", "consumer", "Stable", "range", 0, (MEMBER,))


@pytest.mark.spec("TOOL-12")
def test_offsets_have_the_columns_that_people_cut_apart() -> None:
    rows = [PartitionLag(A, 3, 10, MEMBER), PartitionLag(B, None, 5, None)]
    blank, *lines = group_lines.offsets(GROUP, rows)
    assert blank == ""
    assert [re.sub(" +", " ", line) for line in lines] == [
        "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID",
        "g orders 0 3 10 7 member-0123456789-long /127.0.0.1 client",
        "g orders 1 - 5 - - - -",
    ]
    starts = [match.start() for match in re.finditer(r"\S+", lines[0])]
    assert starts == [0, 16, 32, 43, 59, 75, 91, 114, 130]
    verbose = group_lines.offsets(GROUP, [PartitionLag(A, 3, 10, None, 2)], verbose=True)
    assert verbose[1].split()[3] == "LEADER-EPOCH"
    assert verbose[2].split()[3] == "2"


@pytest.mark.spec("TOOL-12")
def test_members_are_shown_with_what_they_have() -> None:
    head, row = group_lines.members(GROUP, verbose=True)[1:]
    assert head.split() == [
        "GROUP",
        "CONSUMER-ID",
        "GROUP-INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
        "CURRENT-EPOCH",
        "CURRENT-ASSIGNMENT",
        "TARGET-EPOCH",
        "TARGET-ASSIGNMENT",
    ]
    assert row.split()[5:] == ["2", "-", "orders:0,1", "-", "-"]
    dynamic = Group(
        "g", "classic", "consumer", "Stable", "range", 0, (GroupMember("m", None, "c", "/h", ()),)
    )
    assert "GROUP-INSTANCE-ID" not in group_lines.members(dynamic)[1]


def test_states_say_who_coordinates() -> None:
    _, head, row = group_lines.states(GROUP, {0: BrokerInfo(0, "here", 9092, None)})
    assert head.startswith("GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY")
    assert row.split() == ["g", "here:9092", "(0)", "range", "Stable", "1"]


def test_a_list_has_columns_only_when_they_are_asked_for() -> None:
    groups = [GroupListing("g", "consumer", "Stable", "classic")]
    assert group_lines.listing(groups, types=False, states=False) == ["g"]
    head, row = group_lines.listing(groups, types=True, states=True)
    assert head.split() == ["GROUP", "TYPE", "STATE"]
    assert row.split() == ["g", "Classic", "Stable"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Stable", None),
        ("Empty", "has no active members"),
        ("PreparingRebalance", "is rebalancing"),
    ],
)
def test_a_group_that_is_not_simply_stable_is_remarked_on(state: str, said: str | None) -> None:
    group = Group("g", "classic", "consumer", state, "", 0, ())
    remark = group_lines.remark(group)
    assert remark is None if said is None else said in str(remark)
