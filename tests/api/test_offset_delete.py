"""OffsetDelete."""

from __future__ import annotations

from ottla.api.offset_delete import API
from ottla.model.errors import ErrorCode
from ottla.testing import Broker
from tests.api.group_member import TOPIC, commit, new_group, open_line


def test_offsets_are_forgotten_and_what_is_not_there_is_refused(ottla_broker: Broker) -> None:
    group = new_group()
    topics = [
        {"name": TOPIC, "partitions": [{"partition_index": 1}]},
        {"name": "no such topic", "partitions": [{"partition_index": 0}]},
    ]
    with open_line(ottla_broker) as line:
        nobody = line.ask(API.key, 0, group_id=group, topics=topics)
        assert nobody.error_code is ErrorCode.group_id_not_found
        commit(line, group, 42)
        reply = line.ask(API.key, 0, group_id=group, topics=topics)
    codes = [topic.partitions[0].error_code for topic in reply.topics]
    assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
