"""What may be done with a resource, as replies tell it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.api import operations
from ottla.api.api import Context
from ottla.protocol.wire import Call
from ottla.security.acl import Operation as O
from ottla.security.authorizer import Authorizer
from tests.api.allowed import (
    ON_CLUSTER,
    ON_GROUP,
    ON_TOPIC,
    Guarded,
    cluster,
    control,
    group,
    topic,
)

pytestmark = pytest.mark.spec("SEC-04")


def somebody(broker: Guarded) -> Context:
    return Context(Call(0, 0, 0, None, 0), broker.somebody.peer, broker.services)


async def test_without_an_authorizer_everybody_may_do_everything_a_resource_knows() -> None:
    async with control() as broker:
        open_to_all = replace(broker.services, authorizer=Authorizer())
        ctx = replace(somebody(broker), services=open_to_all)
        assert operations.on_topic(ctx, "t") == ON_TOPIC
        assert operations.on_group(ctx, "g") == ON_GROUP
        assert operations.on_cluster(ctx) == ON_CLUSTER


async def test_with_one_only_what_rules_permit_and_what_that_includes() -> None:
    async with control() as broker:
        broker.may(topic(O.ALTER_CONFIGS), group(O.READ), cluster(O.CREATE))
        ctx = somebody(broker)
        assert operations.on_topic(ctx, "t") == 1 << O.ALTER_CONFIGS | 1 << O.DESCRIBE_CONFIGS
        assert operations.on_group(ctx, "g") == 1 << O.READ | 1 << O.DESCRIBE
        assert operations.on_cluster(ctx) == 0, "who may not describe it hears nothing"
        broker.may(cluster(O.DESCRIBE))
        assert operations.on_cluster(ctx) == 1 << O.CREATE | 1 << O.DESCRIBE
