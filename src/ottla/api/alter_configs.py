"""AlterConfigs (33): replace all overrides of a topic, group or broker. For older clients."""

from __future__ import annotations

from typing import Final

from ottla.api.api import Api, Context, Fields, Request
from ottla.api.config_resources import (
    OF_CHANGES,
    ConfigKind,
    Resource,
    alter_broker,
    alter_group,
    alter_topic,
    answer_each,
    broker_of,
    group_name,
    require,
    result,
    unsupported,
)
from ottla.config.changes import check, check_broker, replace_overrides
from ottla.config.group import GroupConfig
from ottla.config.topic import TopicConfig
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode
from ottla.security.acl import Operation

KEY: Final = 33


async def alter_configs(request: Request, ctx: Context) -> Fields:
    pairs = {
        Resource(item.resource_type, item.resource_name): [(c.name, c.value) for c in item.configs]
        async for item in in_slices(request.resources)
    }

    async def alter(resource: Resource) -> None:
        require(ctx, Operation.ALTER_CONFIGS, resource)
        overrides, dry = replace_overrides(pairs[resource]), request.validate_only
        config = ctx.services.config
        match resource.kind:
            case ConfigKind.TOPIC:
                check(TopicConfig, config.current, overrides)
                await alter_topic(ctx, resource.name, lambda _: overrides, dry=dry)
            case ConfigKind.GROUP:
                check(GroupConfig, config.current, overrides)
                await alter_group(ctx, group_name(resource), lambda _: overrides, dry=dry)
            case ConfigKind.BROKER:
                broker = broker_of(ctx, resource.name, OF_CHANGES)
                check_broker(config, overrides, whole_cluster=broker is None)
                await alter_broker(ctx, broker, lambda _: overrides, dry=dry)
            case _:
                raise unsupported(resource)

    return await answer_each(request.resources, alter)


def refuse(request: Request, code: ErrorCode, message: str | None) -> Fields:
    return {
        "throttle_time": 0,
        "responses": [
            result(Resource(item.resource_type, item.resource_name), code, message)
            for item in request.resources
        ],
    }


API = Api(KEY, "AlterConfigs", range(0, 3), alter_configs, refuse)
