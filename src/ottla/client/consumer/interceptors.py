"""Interceptors: what a user puts between the log and the program.

Owns the order: each interceptor gets what the one before it made of the records. One
that fails is logged and passed over, for it must not stop the reading.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.client.consumer.record import Record
from ottla.client.offsets import OffsetAndMetadata
from ottla.model.ids import TopicPartition

log: Final = logging.getLogger("ottla.interceptors")


class ConsumerInterceptor:
    """Derive from this and overrule what you want to see."""

    def on_consume(self, records: list[Record[Any, Any]]) -> list[Record[Any, Any]]:
        """Records before the program gets them; give them back, or others in their place."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Offsets that a broker has."""

    def close(self) -> None:
        """The consumer is closed."""


class Interceptors:
    """All of a consumer's interceptors, as one."""

    def __init__(self, chain: Sequence[ConsumerInterceptor]) -> None:
        self._chain = tuple(chain)

    def __bool__(self) -> bool:
        return bool(self._chain)

    def consumed(self, records: list[Record[Any, Any]]) -> list[Record[Any, Any]]:
        for one in self._chain:
            try:
                records = one.on_consume(records)
            except Exception:
                log.exception("%r failed; the records go on unchanged", one)
        return records

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for one in self._chain:
            try:
                one.on_commit(offsets)
            except Exception:
                log.exception("%r failed for a commit", one)

    def close(self) -> None:
        for one in self._chain:
            try:
                one.close()
            except Exception:
                log.exception("%r failed to close", one)
