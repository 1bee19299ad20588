"""ConsumerGroupHeartbeat, asked over a socket."""

from __future__ import annotations

from typing import Any

import pytest

import ottla
from ottla.api.consumer_group_heartbeat import API
from ottla.client.admin import Resource
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.consumer_member import beat
from tests.api.group_member import commit, new_group, open_line, topic_id
from tests.raw_requests import create_topics


@pytest.mark.parametrize("version", API.versions)
def test_a_member_joins_stays_and_leaves_in_every_version(
    ottla_broker: Broker, version: int
) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        joined = beat(line, group, version=version)
        [given] = joined.assignment.topic_partitions
        assert (given.topic_id, given.partitions) == (topic_id(line), (0, 1, 2))
        assert (joined.member_id, joined.member_epoch) == ("me", 1)
        assert joined.heartbeat_interval.total_seconds() == 5
        quiet = {
            "rebalance_timeout": -1,
            "subscribed_topic_names": None,
            "topic_partitions": None,
        }
        stays = beat(line, group, 1, version, **quiet)
        assert (stays.member_epoch, stays.assignment) == (1, None)
        assert beat(line, group, -1, version, **quiet).member_epoch == -1
        assert beat(line, group, 1, version).error_code is ErrorCode.unknown_member_id


def test_a_group_may_have_a_pace_of_its_own_from_the_next_heartbeat_on(
    ottla_broker: Broker,
) -> None:
    group = new_group()
    with (
        open_line(ottla_broker) as line,
        ottla.Admin(bootstrap_servers=ottla_broker.bootstrap_servers) as admin,
    ):
        assert beat(line, group).heartbeat_interval.total_seconds() == 5
        change = {"consumer.heartbeat.interval.ms": "7000"}
        admin.incremental_alter_configs({Resource.group(group): change}).all()
        assert beat(line, group, 1).heartbeat_interval.total_seconds() == 7
        assert beat(line, new_group()).heartbeat_interval.total_seconds() == 5


def test_an_id_is_made_for_members_of_the_first_version(ottla_broker: Broker) -> None:
    with open_line(ottla_broker) as line:
        assert len(beat(line, new_group(), version=0, member_id="").member_id) == 36
        refused = beat(line, new_group(), version=1, member_id="")
    assert refused.error_code is ErrorCode.invalid_request
    assert refused.error_message == "MemberId can't be empty."


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"member_epoch": -7}, ErrorCode.invalid_request),
        ({"rebalance_timeout": -1}, ErrorCode.invalid_request),
        ({"subscribed_topic_names": None}, ErrorCode.invalid_request),
        ({"topic_partitions": None}, ErrorCode.invalid_request),
        ({"server_assignor": "mine"}, ErrorCode.unsupported_assignor),
        ({"subscribed_topic_regex": "("}, ErrorCode.invalid_regular_expression),
        ({"subscribed_topic_regex": "((a{99}){99}){99}"}, ErrorCode.invalid_regular_expression),
        ({"member_epoch": 3}, ErrorCode.group_id_not_found),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    ottla_broker: Broker, fields: dict[str, Any], code: ErrorCode
) -> None:
    with open_line(ottla_broker) as line:
        refused = beat(line, new_group(), **fields)
        assert refused.error_code is code
        assert beat(line, new_group()).error_code is ErrorCode.none


def test_an_unknown_epoch_is_fenced(ottla_broker: Broker) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        beat(line, group)
        fenced = beat(line, group, 9)
    assert fenced.error_code is ErrorCode.fenced_member_epoch
    assert "greater member epoch (9)" in fenced.error_message


def test_a_pattern_finds_its_topics(ottla_broker: Broker) -> None:
    with open_line(ottla_broker) as line:
        joined = beat(
            line, new_group(), subscribed_topic_names=None, subscribed_topic_regex="group-[a-z]+"
        )
        [given] = joined.assignment.topic_partitions
        assert given.topic_id == topic_id(line)


def test_offsets_are_committed_and_fetched_in_the_members_epoch(ottla_broker: Broker) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        beat(line, group)
        mine: dict[str, Any] = {"member_id": "me", "generation_id_or_member_epoch": 1}
        assert commit(line, group, 5, **mine) is ErrorCode.none
        assert commit(line, group, 6, 8, **mine) is ErrorCode.unsupported_version
        mine["generation_id_or_member_epoch"] = 0
        assert commit(line, group, 6, **mine) is ErrorCode.stale_member_epoch
        assert commit(line, group, 6) is ErrorCode.unknown_member_id
        codes = [
            line.ask(
                9,
                9,
                groups=[
                    {"group_id": group, "member_id": who, "member_epoch": epoch, "topics": None}
                ],
                require_stable=False,
            )
            .groups[0]
            .error_code
            for who, epoch in [("me", 1), (None, -1), ("me", 2), ("you", 1)]
        ]
    assert codes == [
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.stale_member_epoch,
        ErrorCode.unknown_member_id,
    ]


def test_partitions_that_are_added_are_handed_out(ottla_broker: Broker) -> None:
    group, topic = new_group(), f"grows-{new_group()}"
    with open_line(ottla_broker) as line:
        create_topics(line, [topic], 1)
        assert beat(line, group, subscribed_topic_names=[topic]).member_epoch == 1
        assert beat(line, group, 1, subscribed_topic_names=[topic]).member_epoch == 1
        asked = [{"name": topic, "count": 3, "assignments": None}]
        line.ask(37, 3, topics=asked, timeout=10_000, validate_only=False)
        grown = beat(line, group, 1, subscribed_topic_names=[topic])
    assert grown.member_epoch == 2
    assert grown.assignment.topic_partitions[0].partitions == (0, 1, 2)
