"""Requests to other brokers, and what becomes of them when the broker stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from ottla.coordinator.request_queues import IN_FLIGHT_MAX, RequestQueues
from ottla.model.ids import BrokerId

OTHER = BrokerId(2)


async def send(broker: BrokerId, items: Sequence[str]) -> Sequence[str]:
    raise AssertionError("nothing can be sent")


def test_what_is_queued_while_the_broker_stops_is_lost_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(work: Coroutine[Any, Any, None]) -> None:
        work.close()

    queues = RequestQueues("markers", send, lambda item: f"{item} lost", refuse)
    results: list[str] = []
    for item in ("a", "b"):
        queues.put(OTHER, item, results.append)
    assert results == ["a lost", "b lost"]
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("turns", [0, 3])
async def test_a_broker_that_stops_leaves_no_item_without_a_result(turns: int) -> None:
    """Neither those in flight, nor those behind them, nor those whose task has not begun."""

    async def never(_: BrokerId, __: Sequence[str]) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError

    results: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        queues = RequestQueues("markers", never, lambda item: f"{item} lost", tasks.create_task)
        for number in range(2 * IN_FLIGHT_MAX):
            queues.put(OTHER, str(number), results.append)
            for _ in range(turns):
                await asyncio.sleep(0)
        queues.close()
    assert sorted(results) == sorted(f"{number} lost" for number in range(2 * IN_FLIGHT_MAX))
    queues.put(OTHER, "late", results.append)
    assert results[-1] == "late lost"
