"""OffsetFetch."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.api.offset_fetch import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import TOPIC, commit, new_group, open_line, topic_id
from tests.raw_requests import DELETE_TOPICS, Line, create_topics


def fetch(line: Line, version: int, group: str, *, all_of_them: bool = False) -> Any:
    """What is said of the group: partitions 0 and 1, or all."""
    topics = [{"name": TOPIC, "topic_id": topic_id(line), "partition_indexes": [0, 1]}]
    asked = {"group_id": group, "topics": None if all_of_them else topics}
    groups = [{**asked, "member_id": None, "member_epoch": -1}]
    reply = line.ask(API.key, version, **asked, groups=groups, require_stable=True)
    return reply if version < 8 else reply.groups[0]


@pytest.mark.spec("GRP-65")
@pytest.mark.parametrize("version", API.versions)
def test_offsets_are_read_in_every_version(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        commit(line, group, 42)
        [topic] = fetch(line, version, group).topics
        nobody = fetch(line, version, new_group())
    none, one = topic.partitions
    assert (none.committed_offset, none.metadata, none.error_code) == (-1, "", ErrorCode.none)
    assert (one.partition_index, one.committed_offset, one.metadata) == (1, 42, "note")
    assert [part.committed_offset for part in nobody.topics[0].partitions] == [-1, -1]


@pytest.mark.spec("GRP-65")
@pytest.mark.parametrize("version", range(2, 11))
def test_all_offsets_are_read_when_no_topics_are_named(ottla_broker: Broker, version: int) -> None:
    group = new_group()
    with open_line(ottla_broker) as line:
        commit(line, group, 42)
        [topic] = fetch(line, version, group, all_of_them=True).topics
    assert [part.committed_offset for part in topic.partitions] == [42]


@pytest.mark.spec("GRP-23")
@pytest.mark.parametrize("version", API.versions)
def test_a_refusal_is_said_where_the_version_has_a_place_for_it(
    ottla_broker: Broker, version: int
) -> None:
    with open_line(ottla_broker) as line:
        said = fetch(line, version, "")
    if version < 2:
        said = said.topics[0].partitions[0]
    assert said.error_code is ErrorCode.invalid_group_id


def test_several_groups_are_read_together(ottla_broker: Broker) -> None:
    names = [new_group(), new_group()]
    with open_line(ottla_broker) as line:
        for offset, name in enumerate(names):
            commit(line, name, offset)
        asked = [{"group_id": name, "topics": None} for name in names]
        reply = line.ask(API.key, 8, groups=asked, require_stable=False)
    found = [group.topics[0].partitions[0].committed_offset for group in reply.groups]
    assert found == [0, 1]


def test_a_topic_id_that_is_not_known_is_refused(ottla_broker: Broker) -> None:
    with open_line(ottla_broker) as line:
        topics = [{"topic_id": UUID(int=99), "partition_indexes": [0]}]
        group = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": topics}
        reply = line.ask(API.key, 10, groups=[group], require_stable=False)
    [topic] = reply.groups[0].topics
    assert topic.partitions[0].error_code is ErrorCode.unknown_topic_id


@pytest.mark.spec("GRP-72", "MDC-11")
def test_the_offsets_of_a_deleted_topic_are_gone_when_its_name_comes_back(
    ottla_broker: Broker,
) -> None:
    group, name = new_group(), "deleted-and-back"
    with open_line(ottla_broker) as line:
        create_topics(line, [name], 2)
        assert commit(line, group, 42, topic=name) is ErrorCode.none
        line.ask(DELETE_TOPICS, 3, topic_names=[name], timeout=10_000)
        create_topics(line, [name], 2)
        topics = [{"name": name, "partition_indexes": [1]}]
        reply = line.ask(API.key, 5, group_id=group, topics=topics)
    assert reply.topics[0].partitions[0].committed_offset == -1
