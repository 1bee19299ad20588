"""Callables that see every record on its way, and what becomes of it.

Owns: the chains, and that a failing interceptor stops nothing: its error is logged, and the next
goes on with what the last one that worked gave. Never changes what an interceptor gave.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

log: Final = logging.getLogger("ottla.interceptors")

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class ProducerRecord(NamedTuple):
    """A record as it was given to `send`, before it is serialized; `_replace` makes another."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerInterceptor:
    """Derive from this and overrule what you want to see."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """A record before it is serialized; give it back, or another in its place."""
        return record

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        """A record's outcome, before any callback; on the producer's own thread: be quick."""

    def close(self) -> None:
        """The producer is closed."""


class ProducerChain:
    """Interceptors in the order they were given."""

    def __init__(self, interceptors: Sequence[ProducerInterceptor]) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for each in self._interceptors:
            try:
                record = each.on_send(record)
            except Exception:
                log.exception("%r failed for a record to %s", each, record.topic)
        return record

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        for each in self._interceptors:
            try:
                each.on_acknowledgement(metadata, error)
            except Exception:
                log.exception("%r failed for an acknowledgement", each)

    def close(self) -> None:
        for each in self._interceptors:
            try:
                each.close()
            except Exception:
                log.exception("%r failed to close", each)
