from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

import ottla
from ottla import ErrorCode, KafkaError, TopicPartition
from ottla.client.admin import GroupMember
from ottla.client.admin.groups import decode_assignment
from ottla.testing import Broker
from tests.client.admin.group_members import joined


@pytest.fixture
def member(admin_broker: Broker, topic: str) -> Iterator[Consumer]:
    """A member of the group that is called as the topic, with both partitions."""
    consumer = joined(admin_broker, topic)
    yield consumer
    consumer.close()


@pytest.mark.spec("TOOL-12", "TOOL-18")
def test_a_group_is_listed_and_described_with_its_members(
    admin: ottla.Admin, topic: str, member: Consumer
) -> None:
    [listed] = [one for one in admin.list_groups() if one.id == topic]
    assert (listed.protocol_type, listed.state, listed.type) == ("consumer", "Stable", "classic")
    group = admin.describe_group(topic)
    assert (group.state, group.type, group.coordinator) == ("Stable", "classic", 0)
    [one] = group.members
    assert one.client_id == "reader"
    assert sorted(one.assignment) == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert topic not in [each.id for each in admin.list_groups(states=["Empty"])]


def test_members_are_put_out_by_their_ids(admin: ottla.Admin, topic: str, member: Consumer) -> None:
    outcomes = admin.remove_group_members(topic, admin.describe_group(topic).members, reason="test")
    assert outcomes.all()
    assert admin.describe_group(topic).members == ()
    stranger = GroupMember("nobody", None, "", "", ())
    error = admin.remove_group_members(topic, [stranger])["nobody"]
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.unknown_member_id
    assert admin.remove_group_members(topic, []) == {}


def test_static_members_are_put_out_by_their_instance(
    admin: ottla.Admin, admin_broker: Broker, topic: str
) -> None:
    consumer = joined(admin_broker, topic, group_instance_id="steady")
    [one] = admin.describe_group(topic).members
    assert one.instance_id == "steady"
    assert list(admin.remove_group_members(topic, [one]).all()) == [one.id]
    assert admin.describe_group(topic).members == ()
    consumer.close()


@pytest.mark.spec("TOOL-18")
def test_a_group_can_be_deleted_once_it_is_empty(
    admin: ottla.Admin, topic: str, member: Consumer
) -> None:
    refused = admin.delete_groups([topic])[topic]
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.non_empty_group
    member.close()
    admin.delete_groups([topic]).all()
    gone = admin.describe_groups([topic])[topic]
    assert isinstance(gone, KafkaError)
    assert gone.code is ErrorCode.group_id_not_found


def test_an_assignment_that_no_client_wrote_is_none() -> None:
    assert decode_assignment(b"") == ()
    assert decode_assignment(b"\x00\x01\x00\x00\x00\x09") == ()
    one = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\0\0\0\0\7" + b"\xff\xff\xff\xff"
    assert decode_assignment(one) == (TopicPartition("t", 0), TopicPartition("t", 7))
