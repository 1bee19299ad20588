"""Two small brokers whose authorizer is in force, and somebody whose permissions a test gives.

`data` has partitions, groups and transactions but no controller, `control` a controller but no
logs. Requests go through the real dispatch, from a connection as `net` would hold it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from ottla.api.api import Api
from ottla.api.dispatch import Dispatch
from ottla.api.services import Services
from ottla.config.dynamic import DynamicConfig
from ottla.controller.events import NewTopic
from ottla.model.errors import ErrorCode as E
from ottla.protocol.wire import Call
from ottla.security.acl import CLUSTER_NAME, Kind, Operation, Pattern, Permission, Rule, Rules
from ottla.security.authorizer import Authorizer
from tests.api.transaction_requests import transacting
from tests.fakes.api_side import Caller
from tests.fakes.control_plane import control_plane

SOMEBODY: Final = "User:somebody"
TOPIC_NO: Final = E.topic_authorization_failed
GROUP_NO: Final = E.group_authorization_failed
CLUSTER_NO: Final = E.cluster_authorization_failed
TXN_NO: Final = E.transactional_id_authorization_failed
ON_TOPIC: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, write, create, delete, alter, describe, describe and alter configs."""
ON_GROUP: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""Read, delete, describe, describe and alter configs."""
ON_CLUSTER: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, describe and alter configs, idempotent write."""


def rule(
    operation: Operation, kind: Kind, name: str, permission: Permission = Permission.ALLOW
) -> Rule:
    """About somebody, from anywhere."""
    return Rule(kind, name, Pattern.LITERAL, SOMEBODY, "*", operation, permission)


def topic(operation: Operation, name: str = "t") -> Rule:
    return rule(operation, Kind.TOPIC, name)


def group(operation: Operation, name: str = "g") -> Rule:
    return rule(operation, Kind.GROUP, name)


def txn(operation: Operation, name: str = "tx") -> Rule:
    return rule(operation, Kind.TRANSACTIONAL_ID, name)


def cluster(operation: Operation) -> Rule:
    return rule(operation, Kind.CLUSTER, CLUSTER_NAME)


class Guarded:
    """A broker, somebody who calls it, and one of its own who may do everything."""

    def __init__(self, services: Services, tasks: asyncio.TaskGroup, listener: str) -> None:
        self._authorizer = Authorizer(in_force=True)
        self._rules: list[Rule] = []
        self.may()
        in_cluster = DynamicConfig({**services.config.static, "zookeeper.connect": "zk:2181"})
        self.services = replace(services, authorizer=self._authorizer, config=in_cluster)
        self.dispatch = Dispatch(self.services, tasks.create_task)
        self.somebody = Caller(self.dispatch, listener)
        self.somebody.peer.principal = SOMEBODY
        self.trusted = Caller(self.dispatch, listener)
        self.trusted.peer.is_broker = True

    def may(self, *more: Rule) -> None:
        """Somebody may do this too."""
        self._rules += more
        self._authorizer.follow(Rules(self._rules))


World: TypeAlias = Callable[[str], AbstractAsyncContextManager[Guarded]]


@asynccontextmanager
async def data(listener: str = "PLAINTEXT") -> AsyncIterator[Guarded]:
    """Leads partition 0 of the topic `t`."""
    async with asyncio.TaskGroup() as tasks, transacting() as asker:
        yield Guarded(asker.services, tasks, listener)


@asynccontextmanager
async def control(listener: str = "PLAINTEXT") -> AsyncIterator[Guarded]:
    """Knows the topics `t` and `u`."""
    async with asyncio.TaskGroup() as tasks, control_plane() as plane:
        node = await plane.start(1)
        await node.controller.create_topics([NewTopic("t"), NewTopic("u")], 5_000)
        services = node.context(Call(0, 0, 0, None, 0)).services
        yield Guarded(services, tasks, listener)


@dataclass(frozen=True)
class Case:
    """One request: what somebody sees who may do nothing, and then with each further permission."""

    api: Api
    fields: dict[str, Any] | Callable[[Guarded], dict[str, Any]]
    seen: Callable[[Any], object]
    at_first: object
    then: tuple[tuple[Rule, object], ...] = ()
    note: str = ""
    version: int = -1
    listener: str = "PLAINTEXT"
    before: Callable[[Guarded], Awaitable[object]] | None = None
    to_brokers: object = None
    """What another broker sees, where nobody else may see anything."""

    async def ask(self, broker: Guarded, caller: Caller | None = None) -> object:
        fields = self.fields if isinstance(self.fields, dict) else self.fields(broker)
        who = caller or broker.somebody
        return self.seen(await who.ask(self.api, self.version, **fields))


def code(said: Any) -> object:
    """Of the whole reply."""
    return said.error_code


def first(said: Any) -> object:
    """Of the first partition of the first topic."""
    return said.topics[0].partitions[0].error_code
