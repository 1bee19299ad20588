"""Questions to the controller that wait for their answers.

Owns the numbers and the futures behind them. Never knows what is asked.
"""

from __future__ import annotations

import asyncio
from itertools import count

from ottla.model.errors import ErrorCode, KafkaError


class PendingRequests:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[object]] = {}

    def open(self) -> tuple[int, asyncio.Future[object]]:
        number = next(self._numbers)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._open[number] = future
        return number, future

    def answer(self, number: int, answer: object) -> None:
        """Nobody may be waiting any more: then the answer is dropped."""
        future = self._open.pop(number, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def close(self, number: int) -> None:
        self._open.pop(number, None)

    def refuse_all(self) -> None:
        """No longer in office, or unable to act: ask the next one, or again."""
        for future in self._open.values():
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.not_controller))
        self._open.clear()
