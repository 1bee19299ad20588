"""ConsumerGroupDescribe, and how the classic tools' APIs show consumer groups."""

from __future__ import annotations

import pytest

from ottla.api import delete_groups, describe_groups, list_groups
from ottla.api.consumer_group_describe import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.consumer_member import beat
from tests.api.group_member import TOPIC, new_group, open_line, stable, topic_id


@pytest.mark.parametrize("version", API.versions)
def test_groups_are_described_in_every_version(ottla_broker: Broker, version: int) -> None:
    group, classic, nobody = new_group(), new_group(), new_group()
    with open_line(ottla_broker) as line:
        beat(line, group, instance_id="i", rack_id="r", server_assignor="range")
        stable(line, classic)
        asked = [group, classic, nobody, ""]
        reply = line.ask(API.key, version, group_ids=asked, include_authorized_operations=False)
        known, other, unknown, unnamed = reply.groups
        topic = topic_id(line)
    assert (known.group_state, known.group_epoch, known.assignment_epoch) == ("Stable", 1, 1)
    assert known.assignor_name == "range"
    [member] = known.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("me", "i", "r")
    assert (member.client_id, member.client_host) == ("asking", "/127.0.0.1")
    assert (member.member_epoch, member.subscribed_topic_names) == (1, (TOPIC,))
    assert member.subscribed_topic_regex == ""
    for shown in (member.assignment, member.target_assignment):
        [part] = shown.topic_partitions
        assert (part.topic_id, part.topic_name, part.partitions) == (topic, TOPIC, (0, 1, 2))
    assert member.member_type == (1 if version else -1)
    assert other.error_code is unknown.error_code is ErrorCode.group_id_not_found
    assert unnamed.error_code is ErrorCode.invalid_group_id


def test_a_consumer_group_is_dead_to_the_classic_api(ottla_broker: Broker) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        beat(line, group)
        asked = {"groups": [group], "include_authorized_operations": False}
        old, new = (line.ask(describe_groups.KEY, at, **asked).groups[0] for at in (5, 6))
    assert (old.group_state, old.error_code) == ("Dead", ErrorCode.none)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.group_id_not_found)


def test_groups_are_listed_by_their_type_and_deleted_when_empty(ottla_broker: Broker) -> None:
    group, classic = new_group(), new_group()
    with open_line(ottla_broker) as line:
        beat(line, group)
        stable(line, classic)

        def listed(kind: str) -> dict[str, tuple[str, str]]:
            found = line.ask(list_groups.KEY, 5, states_filter=[], types_filter=[kind])
            return {one.group_id: (one.group_state, one.group_type) for one in found.groups}

        assert listed("consumer")[group] == ("Stable", "consumer")
        assert group not in listed("classic") and classic not in listed("consumer")
        refused = line.ask(delete_groups.KEY, 2, groups_names=[group]).results[0]
        assert refused.error_code is ErrorCode.non_empty_group
        beat(line, group, -1)
        done = line.ask(delete_groups.KEY, 2, groups_names=[group]).results[0]
        assert done.error_code is ErrorCode.none
        assert group not in listed("consumer")
