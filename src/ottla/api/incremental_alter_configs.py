"""IncrementalAlterConfigs (44): set, delete, append to or subtract from single overrides."""

from __future__ import annotations

from functools import partial
from typing import Final

from ottla.api import loggers
from ottla.api.alter_configs import refuse
from ottla.api.api import Api, Context, Fields, Request
from ottla.api.config_resources import (
    OF_CHANGES,
    OF_LOG_LEVELS,
    ConfigKind,
    Resource,
    alter_broker,
    alter_group,
    alter_topic,
    answer_each,
    broker_of,
    group_name,
    require,
    unsupported,
)
from ottla.config.changes import Alteration, alter_overrides, altered_broker
from ottla.config.group import GroupConfig
from ottla.config.topic import TopicConfig
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import Operation

KEY: Final = 44


async def incremental_alter_configs(request: Request, ctx: Context) -> Fields:
    changes = {
        Resource(item.resource_type, item.resource_name): [
            Alteration(config.name, config.config_operation, config.value)
            for config in item.configs
        ]
        async for item in in_slices(request.resources)
    }

    async def alter(resource: Resource) -> None:
        require(ctx, Operation.ALTER_CONFIGS, resource)
        alterations, dry = changes[resource], request.validate_only
        config = ctx.services.config
        match resource.kind:
            case ConfigKind.TOPIC:
                change = partial(alter_overrides, TopicConfig, config.current, alterations)
                await alter_topic(ctx, resource.name, change, dry=dry)
            case ConfigKind.GROUP:
                change = partial(alter_overrides, GroupConfig, config.current, alterations)
                await alter_group(ctx, group_name(resource), change, dry=dry)
            case ConfigKind.BROKER:
                broker = broker_of(ctx, resource.name, OF_CHANGES)
                change = partial(altered_broker, config, alterations, whole_cluster=broker is None)
                await alter_broker(ctx, broker, change, dry=dry)
            case ConfigKind.BROKER_LOGGER:
                _alter_loggers(ctx, resource.name, alterations, dry=dry)
            case _:
                raise unsupported(resource)

    return await answer_each(request.resources, alter)


def _alter_loggers(ctx: Context, name: str, alterations: list[Alteration], *, dry: bool) -> None:
    if broker_of(ctx, name, OF_LOG_LEVELS) is None:
        raise KafkaError(ErrorCode.invalid_request, "Broker id must not be empty")
    loggers.check(alterations)
    if not dry:
        loggers.apply(alterations)


API = Api(KEY, "IncrementalAlterConfigs", range(0, 2), incremental_alter_configs, refuse)
