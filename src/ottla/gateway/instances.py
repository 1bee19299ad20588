"""All consumer instances of a gateway: created, found, expired, closed.

Owns: the tasks in which they live, and the loop that closes those no request has used for long.
Never: decides which those are; `instance_table` does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from ottla.gateway.consumer_requests import NewInstance
from ottla.gateway.group_consumer import GroupConsumer
from ottla.gateway.instance_table import InstanceKey, InstanceTable
from ottla.gateway.limits import MIB, Limits
from ottla.model.clock import Clock

log = logging.getLogger(__name__)

EXPIRY_CHECKS: Final = 10
"""How often within the timeout expired instances are looked for."""
SMALL_BUFFERS: Final = {
    "fetch.max.bytes": str(4 * MIB),
    "max.partition.fetch.bytes": str(MIB),
}
"""A hundred consumers with Kafka's buffers of 50 MB would need 5 GB."""


class ConsumerInstances:
    """The consumers of one gateway, for as long as the block lasts."""

    def __init__(
        self,
        config: Mapping[str, str],
        limits: Limits,
        clock: Clock,
        new_name: Callable[[], str],
    ) -> None:
        self._config = {**SMALL_BUFFERS, **config}
        self._limits = limits
        self._clock = clock
        self._new_name = new_name
        self._table: InstanceTable[GroupConsumer] = InstanceTable(
            limits.max_consumers, limits.instance_timeout_ms
        )
        self._tasks = asyncio.TaskGroup()
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.create_task(self._expire())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for instance in self._table.all():
            instance.stop()
        # Not the error: the group would wrap it, and its tasks end by themselves.
        await self._tasks.__aexit__(None, None, None)

    def create(self, group: str, settings: NewInstance) -> GroupConsumer:
        """A new instance; its consumer joins the group with its first read."""
        name = settings.name or f"rest-consumer-{self._new_name()}"
        key = InstanceKey(group, name)
        instance = GroupConsumer(key, settings, self._config_of(key, settings), self._clock)
        self._table.add(key, instance, self._clock.mono_ms())
        self._tasks.create_task(self._run(instance))
        return instance

    @contextmanager
    def use(self, group: str, name: str) -> Iterator[GroupConsumer]:
        """An instance for one request; refused with 40403."""
        with self._table.use(InstanceKey(group, name), self._clock) as instance:
            yield instance

    async def delete(self, group: str, name: str) -> None:
        """Leave the group and forget the instance."""
        instance = self._table.remove(InstanceKey(group, name))
        instance.stop()
        await instance.wait_closed()

    def wake(self) -> None:
        """End all running reads: the gateway stops."""
        for instance in self._table.all():
            instance.wake()

    async def _run(self, instance: GroupConsumer) -> None:
        try:
            await instance.run(self._limits.stop_timeout_ms)
        finally:
            self._table.discard(instance.key, instance)

    async def _expire(self) -> None:
        pause_s = self._limits.instance_timeout_ms / EXPIRY_CHECKS / 1e3
        while not self._stop.is_set():
            for key, instance in self._table.remove_expired(self._clock.mono_ms()).items():
                log.info(
                    "consumer instance expired: group=%r instance=%r timeout_ms=%d",
                    *(*key, self._limits.instance_timeout_ms),
                )
                instance.stop()
            try:
                async with asyncio.timeout(pause_s):
                    await self._stop.wait()
            except TimeoutError:
                continue

    def _config_of(self, key: InstanceKey, settings: NewInstance) -> dict[str, str]:
        config = {**self._config, "group.id": key.group, "client.id": key.name}
        if settings.auto_offset_reset is not None:
            config["auto.offset.reset"] = settings.auto_offset_reset
        if settings.auto_commit is not None:
            config["enable.auto.commit"] = str(settings.auto_commit).lower()
        return config
