"""A producer for asyncio against a scripted broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import ottla.aio
from tests.client.rig import QUICK, run, until
from tests.fakes.scripted_broker import ScriptedBroker

__all__ = ["producing", "run", "until"]


@asynccontextmanager
async def producing(broker: ScriptedBroker, **options: Any) -> AsyncIterator[ottla.aio.Producer]:
    """A producer that does not linger, and is quick to try again."""
    options = {"linger_ms": 0, **QUICK, **options}
    async with ottla.aio.Producer(bootstrap_servers=broker.address, **options) as producer:
        yield producer
