"""Requests to the controller that wait for a reply.

Owns their ids and futures. Never knows what they request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count

from ottla.model.errors import ErrorCode, KafkaError


class PendingRequests:
    def __init__(self) -> None:
        self._ids = count(1)
        self._open: dict[int, asyncio.Future[object]] = {}

    def open(self) -> tuple[int, asyncio.Future[object]]:
        request_id = next(self._ids)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._open[request_id] = future
        return request_id, future

    def reply(self, request_id: int, reply: object) -> None:
        """Dropped if the caller no longer waits."""
        future = self._open.pop(request_id, None)
        if future is not None and not future.done():
            future.set_result(reply)

    def close(self, request_id: int) -> None:
        self._open.pop(request_id, None)

    def fail(self, request_ids: Iterable[int], code: ErrorCode) -> None:
        for request_id in request_ids:
            future = self._open.pop(request_id, None)
            if future is not None and not future.done():
                future.set_exception(KafkaError(code))

    def fail_all(self) -> None:
        """NOT_CONTROLLER for all: this broker resigned or cannot act; clients retry."""
        self.fail(list(self._open), ErrorCode.not_controller)
