"""Waiting on the event loop until batches have their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ottla.client.producer.buffer.batch import Batch


async def finished(batches: Iterable[Batch]) -> None:
    """Until each of these has its outcome, or those that took its place have."""
    todo = list(batches)
    while todo:
        batch = todo.pop()
        heirs = batch.heirs
        if heirs != [batch]:
            todo += heirs
        elif not batch.is_done:
            await something_became_of(batch)
            todo.append(batch)


async def something_became_of(batch: Batch) -> None:
    """Until the batch has its outcome, or others took its place."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()

    def arrive() -> None:
        if not arrived.done():
            arrived.set_result(None)

    if batch.watch(lambda: loop.call_soon_threadsafe(arrive)):
        await arrived
