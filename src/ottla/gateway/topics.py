"""Topics, partitions and brokers: what the cluster has.

Owns: the handlers of these paths and the JSON of their replies. Never: creates or changes a topic.
"""

from __future__ import annotations

from ottla.client.admin.configs import Resource
from ottla.client.admin.offsets import OffsetSpec
from ottla.client.admin.topics import Partition, Topic
from ottla.gateway.errors import partition_not_found, topic_not_found
from ottla.gateway.http_messages import Response, json_reply
from ottla.gateway.services import Call, Services
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import TopicPartition


async def list_topics(call: Call, services: Services) -> Response:
    """GET /topics"""
    return json_reply(await services.admin.list_topics(), call.reply_type)


async def describe_topic(call: Call, services: Services) -> Response:
    """GET /topics/{topic}"""
    topic = await find_topic(services, call.names.text("topic"))
    resource = Resource.topic(topic.name)
    entries = (await services.admin.describe_configs([resource])).one()
    reply = {
        "name": topic.name,
        "configs": {name: entry.value for name, entry in sorted(entries.items())},
        "partitions": [partition_fields(partition) for partition in topic.partitions],
    }
    return json_reply(reply, call.reply_type)


async def list_partitions(call: Call, services: Services) -> Response:
    """GET /topics/{topic}/partitions"""
    topic = await find_topic(services, call.names.text("topic"))
    return json_reply([partition_fields(each) for each in topic.partitions], call.reply_type)


async def describe_partition(call: Call, services: Services) -> Response:
    """GET /topics/{topic}/partitions/{partition}"""
    topic = await find_topic(services, call.names.text("topic"))
    partition = partition_of(topic, call.names.integer("partition"))
    return json_reply(partition_fields(partition), call.reply_type)


async def partition_offsets(call: Call, services: Services) -> Response:
    """GET /topics/{topic}/partitions/{partition}/offsets"""
    topic = await find_topic(services, call.names.text("topic"))
    partition = partition_of(topic, call.names.integer("partition"))
    tp = TopicPartition(topic.name, partition.index)
    offsets = {}
    for name, spec in (
        ("beginning_offset", OffsetSpec.EARLIEST),
        ("end_offset", OffsetSpec.LATEST),
    ):
        offsets[name] = (await services.admin.list_offsets({tp: spec})).one().offset
    return json_reply(offsets, call.reply_type)


async def list_brokers(call: Call, services: Services) -> Response:
    """GET /brokers"""
    return json_reply({"brokers": await services.admin.brokers()}, call.reply_type)


async def root(call: Call, _: Services) -> Response:
    """GET /"""
    return json_reply({}, call.reply_type)


async def find_topic(services: Services, name: str) -> Topic:
    """The topic, which is never created by asking for it; refused with 40401."""
    try:
        return await services.admin.describe_topic(name)
    except KafkaError as error:
        # A name that no topic can have is a topic that does not exist.
        unknown = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)
        if error.code in unknown:
            raise topic_not_found(name) from None
        raise


def partition_of(topic: Topic, index: int) -> Partition:
    """One partition of a topic; refused with 40402."""
    for partition in topic.partitions:
        if partition.index == index:
            return partition
    raise partition_not_found(topic.name, index)


def partition_fields(partition: Partition) -> dict[str, object]:
    """The JSON of a partition; a leader of -1 means that it has none."""
    return {
        "partition": partition.index,
        "leader": -1 if partition.leader is None else partition.leader,
        "replicas": [
            {
                "broker": broker,
                "leader": broker == partition.leader,
                "in_sync": broker in partition.isr,
            }
            for broker in partition.replicas
        ],
    }
