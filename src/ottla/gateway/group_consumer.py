"""One consumer instance: a member of a group that HTTP requests read through.

Owns: the consumer, the task it lives in, and that requests use it one at a time. Never: parses a
request.

The consumer stays open between requests: it fetches ahead and sends heartbeats. Its assignment
changes only while a request reads. Records that were read for a reply and do not go into it,
because it would be too large, a record is not of the format, or the client has gone, are read
again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from ottla.client.consumer.aio import Consumer
from ottla.client.consumer.errors import Wakeup
from ottla.client.consumer.record import Record
from ottla.client.errors import SerializationError
from ottla.client.retry import Deadline
from ottla.gateway.consumer_requests import NewInstance, Read
from ottla.gateway.errors import instance_not_found
from ottla.gateway.instance_table import InstanceKey
from ottla.gateway.record_formats import record_json, size_of
from ottla.model.clock import Clock
from ottla.model.errors import KafkaError, UserError
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

POLL_RECORDS: Final = 500
SLICE_BYTES: Final = 256 * 1024
"""Of records that are checked and encoded at a time: a few milliseconds."""
RECORD_BYTES: Final = 200
"""What a record costs beside its bytes, in bytes."""


class GroupConsumer:
    """A consumer and what its creator chose for it."""

    def __init__(
        self, key: InstanceKey, settings: NewInstance, config: Mapping[str, object], clock: Clock
    ) -> None:
        self.key = key
        self.settings = settings
        self._clock = clock
        self._consumer = Consumer(config=config)
        self._opened = asyncio.Event()
        self._stop = asyncio.Event()
        self._closed = asyncio.Event()
        self._lock = asyncio.Lock()

    async def run(self, close_timeout_ms: int) -> None:
        """Keep the consumer open until `stop`; then it leaves its group."""
        try:
            async with self._consumer as consumer:
                self._opened.set()
                await self._stop.wait()
                async with self._lock:
                    await consumer.close(close_timeout_ms / 1e3)
        except (KafkaError, OSError, UserError, ExceptionGroup) as error:
            log.error("consumer instance failed: group=%r instance=%r: %s", *self.key, error)
        finally:
            self._stop.set()
            self._opened.set()
            self._closed.set()

    def stop(self) -> None:
        """Leave the group; a request that reads is answered first, with what it has."""
        self._stop.set()
        self.wake()

    def wake(self) -> None:
        """End a running read."""
        if self._lock.locked():
            self._consumer.wakeup()

    async def wait_closed(self) -> None:
        await self._closed.wait()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Consumer]:
        """The consumer, for this request alone."""
        await self._opened.wait()
        async with self._lock:
            if self._stop.is_set():
                raise instance_not_found(*self.key)
            yield self._consumer

    async def read(self, limits: Read) -> bytes:
        """The JSON array of the records that fit, as soon as there are enough."""
        async with self.use() as consumer:
            records: list[Record] = []
            try:
                await self._gather(consumer, limits, records)
                rows = await self._rows(consumer, records)
            except BaseException:
                rewind(consumer, records)
                raise
            return b"[%b]" % b",".join(rows)

    async def _gather(self, consumer: Consumer, limits: Read, records: list[Record]) -> None:
        """Poll until there are enough records; `records` are always those that were taken."""
        deadline = Deadline(self._clock, limits.timeout_ms)
        size = 0
        while not self._stop.is_set():
            room = min(POLL_RECORDS, limits.max_records - len(records))
            is_enough = size >= limits.min_bytes
            wait_ms = 0 if is_enough else max(0, deadline.left_ms)
            try:
                polled = await consumer.poll(wait_ms / 1e3, max_records=room)
            except Wakeup:
                return
            fitting = count_fitting(polled, limits.max_bytes - size, at_least_one=not records)
            records += polled[:fitting]
            size += sum(map(size_of, polled[:fitting]))
            rewind(consumer, polled[fitting:])
            is_full = fitting < len(polled) or len(records) >= limits.max_records
            if is_full or (not polled and (is_enough or deadline.is_over)):
                return

    async def _rows(self, consumer: Consumer, records: Sequence[Record]) -> list[bytes]:
        """The JSON of the records before the first that is not of the format."""
        rows: list[bytes] = []
        encoded_bytes = 0
        for index, record in enumerate(records):
            encoded_bytes += RECORD_BYTES + size_of(record)
            if encoded_bytes > SLICE_BYTES:
                await asyncio.sleep(0)  # long replies let other requests have their turn
                encoded_bytes = 0
            try:
                rows.append(record_json(record, self.settings.format))
            except SerializationError:
                if not rows:
                    raise
                rewind(consumer, records[index:])
                break
        return rows


def count_fitting(records: Sequence[Record], max_bytes: int, *, at_least_one: bool) -> int:
    """How many of these have at most so many bytes together."""
    size = 0
    for index, record in enumerate(records):
        size += size_of(record)
        if size > max_bytes and not (at_least_one and index == 0):
            return index
    return len(records)


def rewind(consumer: Consumer, records: Sequence[Record]) -> None:
    """Have these read again, from the first of each partition that is still assigned."""
    firsts: dict[TopicPartition, int] = {}
    for record in records:
        firsts.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    for tp, offset in firsts.items():
        if tp in consumer.assignment():
            consumer.seek(tp, offset)
