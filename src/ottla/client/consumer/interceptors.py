"""Consumer interceptors.

Owns the order: each interceptor gets the records that the one before it returned. One that fails is
logged and skipped; it does not stop the consumer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.client.consumer.record import AnyRecord
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.ids import TopicPartition

log: Final = logging.getLogger("ottla.interceptors")


class ConsumerInterceptor:
    """Base class: override the methods you need."""

    def on_consume(self, records: list[AnyRecord]) -> list[AnyRecord]:
        """Called before the program gets records; return them, or others in their place."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Called with offsets that were committed."""

    def close(self) -> None:
        """Called when the consumer is closed."""


class Interceptors:
    """All of a consumer's interceptors, as one."""

    def __init__(self, chain: Sequence[ConsumerInterceptor]) -> None:
        self._chain = tuple(chain)

    def __bool__(self) -> bool:
        return bool(self._chain)

    def call_on_consume(self, records: list[AnyRecord]) -> list[AnyRecord]:
        for interceptor in self._chain:
            try:
                records = interceptor.on_consume(records)
            except Exception:
                log.exception(
                    "interceptor %r failed in on_consume; the records are passed on unchanged",
                    interceptor,
                )
        return records

    def call_on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for interceptor in self._chain:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                log.exception("interceptor %r failed in on_commit; ignored", interceptor)

    def close(self) -> None:
        for interceptor in self._chain:
            try:
                interceptor.close()
            except Exception:
                log.exception("interceptor %r failed in close; ignored", interceptor)
