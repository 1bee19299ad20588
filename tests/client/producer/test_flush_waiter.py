"""Waiting for outcomes on the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ottla.client.producer.delivery import wait_until_done
from tests.client.producer.rig import batch


@pytest.mark.real_loop
async def test_all_batches_are_waited_for_and_those_that_took_their_place() -> None:
    one, whole, parts = batch(), batch(b"a", b"b"), [batch(b"a"), batch(b"b")]
    done = batch()
    done.succeed(0, -1)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(wait_until_done([done, one, whole]))
        await asyncio.sleep(0)
        threading.Thread(target=one.fail, args=(ValueError(),)).start()
        whole.split_into(parts)
        parts[0].succeed(0, -1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        parts[1].succeed(1, -1)
