"""Requests to other brokers, and what becomes of them when the broker stops."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from ottla.coordinator.request_queues import RequestQueues
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
