"""CreateTopics (19): new topics, answered once this broker can show them with their leaders."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.throttling import MutationQuota
from ottla.config.dynamic import DynamicConfig, Overrides
from ottla.config.entries import describe_topic
from ottla.controller.events import NewTopic
from ottla.controller.topics import Created
from ottla.delay.slices import Slices, in_slices, sliced
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import NO_TOPIC_ID, BrokerId
from ottla.protocol import wire
from ottla.protocol.schema import KioStruct
from ottla.security.acl import CLUSTER_NAME, Kind, Operation

KEY: Final = 19
FIRST_STRICT: Final = 6
"""From this version on clients know THROTTLING_QUOTA_EXCEEDED."""
SLICE: Final = 10
"""Topics handled before the loop may run other tasks: each has dozens of settings."""


async def create_topics(request: Request, ctx: Context) -> Fields:
    controller = ctx.services.controller
    outcomes: dict[str, Created | KafkaError] = {}
    new_topics: dict[str, NewTopic] = {}
    times: Counter[str] = Counter()
    async for topic in in_slices(request.topics):
        times[topic.name] += 1
    creates_any = ctx.allows(Operation.CREATE, Kind.CLUSTER, CLUSTER_NAME, noted=False)
    slices = Slices(SLICE)
    quota = MutationQuota(ctx, FIRST_STRICT)
    async for topic in slices.of(request.topics):
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.invalid_request, "Duplicate topic name.")
            if not creates_any:
                ctx.require(Operation.CREATE, Kind.TOPIC, topic.name)
            new_topic = _new_topic(topic)
            quota.take(_partition_count(topic, ctx))
            new_topics[topic.name] = new_topic
        except KafkaError as refusal:
            outcomes[topic.name] = refusal
    outcomes |= await controller.create_topics(
        list(new_topics.values()), wire.ms(request.timeout), validate_only=request.validate_only
    )
    async for topic in in_slices(request.topics):
        if topic.name in new_topics and isinstance(outcomes[topic.name], KafkaError):
            quota.give_back(_partition_count(topic, ctx))
    created = [name for name, outcome in outcomes.items() if isinstance(outcome, Created)]
    config = ctx.services.config
    if request.validate_only:
        config = await _imagined(
            config, {name: new_topics[name].config for name in created}, slices
        )
    else:
        for names in sliced(created):
            await ctx.services.shared.configs.load_topics(names)
            await asyncio.sleep(0)
    results = [  # encoded one by one: a thousand topics have dozens of settings each
        wire.encode_part(ctx.call, "topics", _result(name, outcomes[name], config, ctx))
        async for name in in_slices(times, SLICE)
    ]
    return {**_fields(results), "throttle_time": quota.delay_ms}


def _partition_count(topic: KioStruct, ctx: Context) -> int:
    count = len(topic.assignments) or topic.num_partitions
    return count if count > 0 else ctx.services.config.current.num_partitions


def _new_topic(topic: KioStruct) -> NewTopic:
    assignment: dict[int, tuple[BrokerId, ...]] = {}
    for item in topic.assignments:
        if item.partition_index in assignment:
            raise KafkaError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {item.partition_index}",
            )
        assignment[item.partition_index] = tuple(map(BrokerId, item.broker_ids))
    nulls = [entry.name for entry in topic.configs if entry.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.invalid_config,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    config = {entry.name: entry.value for entry in topic.configs}
    return NewTopic(topic.name, topic.num_partitions, topic.replication_factor, assignment, config)


async def _imagined(
    config: DynamicConfig, topics: dict[str, Overrides], slices: Slices
) -> DynamicConfig:
    """The configuration as it would be if these topics existed."""
    imagined = DynamicConfig(config.static)
    imagined.set_cluster(config.cluster)
    imagined.set_broker(config.broker)
    async for name, overrides in slices.of(topics.items()):
        imagined.set_topic(name, overrides)
    return imagined


def _result(
    name: str, outcome: Created | KafkaError, config: DynamicConfig, ctx: Context
) -> Fields:
    if isinstance(outcome, KafkaError):
        return _refused(name, outcome.code, outcome.message)
    fields = {
        "name": name,
        "topic_id": outcome.id,
        "error_code": ErrorCode.none,
        "error_message": None,
    }
    if not ctx.allows(Operation.DESCRIBE_CONFIGS, Kind.TOPIC, name, noted=False):
        hidden = ErrorCode.topic_authorization_failed
        return {**fields, "topic_config_error_code": hidden, "configs": []}
    return {
        **fields,
        "num_partitions": outcome.partition_count,
        "replication_factor": outcome.replication_factor,
        "configs": [
            {
                "name": entry.name,
                "value": entry.value,
                "read_only": entry.read_only,
                "config_source": entry.source,
                "is_sensitive": entry.sensitive,
            }
            for entry in describe_topic(config, name)
        ],
    }


def _refused(name: str, code: ErrorCode, message: str | None) -> Fields:
    return {
        "name": name,
        "topic_id": NO_TOPIC_ID,
        "error_code": code,
        "error_message": message,
        "configs": [],
    }


def _fields(topics: Iterable[Fields | wire.Encoded]) -> Fields:
    return {"throttle_time": 0, "topics": list(topics)}


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return _fields(_refused(name, code, message) for name in names)


API = Api(KEY, "CreateTopics", range(2, 8), create_topics, refuse, needs_controller=True)
