"""A cluster client against a scripted broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from ottla.client.cluster import Cluster
from ottla.config.client import ClientConfig
from ottla.model.clock import SystemClock
from tests.fakes.scripted_broker import ScriptedBroker

QUICK = {"retry_backoff_ms": 1, "reconnect_backoff_ms": 1, "retry_backoff_max_ms": 5}


def run(main: Callable[[], Awaitable[None]], timeout: float = 60) -> None:
    """The test on a loop of its own; nothing in it may hang."""

    async def bounded() -> None:
        async with asyncio.timeout(timeout):
            await main()

    asyncio.run(bounded())


def config_for(*addresses: str, **options: Any) -> ClientConfig:
    return ClientConfig.from_options({"bootstrap_servers": list(addresses), **QUICK, **options})


@asynccontextmanager
async def connected(
    *brokers: ScriptedBroker, auto_create: bool = False, **options: Any
) -> AsyncIterator[Cluster]:
    config = config_for(*(broker.address for broker in brokers), **options)
    async with Cluster(config, SystemClock(), Random(1), auto_create=auto_create) as cluster:
        yield cluster


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so."""
    while not condition():  # noqa: ASYNC110 - the condition is a broker's, or another thread's
        await asyncio.sleep(0.001)
