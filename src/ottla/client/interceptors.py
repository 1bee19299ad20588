"""Producer interceptors: called for every record and for its acknowledgement.

Owns: the chain. A failing interceptor stops nothing: its error is logged, and the next one gets
the last good record. Never changes a record itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

log: Final = logging.getLogger("ottla.interceptors")

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class ProducerRecord(NamedTuple):
    """A record as passed to `send`, before it is serialized; `_replace` makes a changed copy."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerInterceptor:
    """Base class: override the methods you need."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Called before the record is serialized; return it, or another in its place."""
        return record

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        """Called with a record's outcome, before callbacks, on the producer's thread: be quick."""

    def close(self) -> None:
        """Called when the producer is closed."""


class ProducerChain:
    """Interceptors in the order they were given."""

    def __init__(self, interceptors: Sequence[ProducerInterceptor]) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:
                log.exception(
                    "interceptor %r failed in on_send for topic %s; the record is sent unchanged",
                    interceptor,
                    record.topic,
                )
        return record

    def on_acknowledgement(self, metadata: object | None, error: BaseException | None) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception:
                log.exception("interceptor %r failed in on_acknowledgement; ignored", interceptor)

    def close(self) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:
                log.exception("interceptor %r failed in close; ignored", interceptor)
