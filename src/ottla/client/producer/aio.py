"""The producer for asyncio.

Owns: only the public class; the core does all the work, on the caller's own event loop.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        delivery = await producer.send("orders", b"one")
        print(await delivery)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ottla.client.cluster_view import PartitionView
from ottla.client.errors import KafkaError
from ottla.client.interceptors import ProducerInterceptor
from ottla.client.offsets import Offsets
from ottla.client.partitioners import Partitioner
from ottla.client.producer.buffer.batch import Batch
from ottla.client.producer.buffer.buffer_memory import MemoryClaim
from ottla.client.producer.buffer.table_writer import Columns, TableWriter
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.options import core_of, group_of
from ottla.client.producer.send_path import GivenHeaders, SendPath, checked_record
from ottla.client.producer.table_delivery import TableDelivery
from ottla.client.producer.transactions.coordinator_requests import GroupIdentity
from ottla.client.producer.transactions.state import PreparedTransaction
from ottla.client.retry import Deadline
from ottla.client.serializers import Serializer

if TYPE_CHECKING:
    import pyarrow as pa


class Producer(SendPath):
    """Sends records. One for many tasks of one event loop.

    Options are Kafka's with underscores (`linger_ms=5`), or under their own names in `config`.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, object] | None = None,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | None = None,
        interceptors: Sequence[ProducerInterceptor] = (),
        **options: object,
    ) -> None:
        super().__init__(
            core_of(options, config, (key_serializer, value_serializer), partitioner, interceptors)
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Start the producer; `async with` does it."""
        await self._core.open()

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - of the whole close
        """Send buffered records for up to `timeout` seconds, then close; 0 drops them."""
        await self._core.close(None if timeout is None else int(timeout * 1e3))

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        headers: GivenHeaders = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Buffer a record; waits only for metadata and memory. Await the result for its outcome."""
        if type(value) is bytes and headers is None and partition is None and timestamp_ms is None:
            if key is None:
                delivery = self._append_fast(topic, value)
            else:
                delivery = (
                    self._append_fast_keyed(topic, value, key) if type(key) is bytes else None
                )
            if delivery is not None:
                return delivery
        # A batch is full: a caller that never waits must let the sender run.
        await asyncio.sleep(0)
        self._intake.check()
        record = self._intercept(
            checked_record(
                topic, value, key,
                headers=headers, partition=partition, timestamp_ms=timestamp_ms,
            )
        )  # fmt: skip
        deadline = Deadline(self._core.clock, self._core.config.max_block_ms)
        try:
            view = await self._core.topic(record.topic, record.partition, deadline.left_ms)
            prepared = self._intake.prepare(view, record)
            delivery = self._intake.append(prepared)
            while delivery is None:
                delivery = self._intake.append(
                    prepared, await self._memory(self._intake.needed_bytes(prepared), deadline)
                )
        except (KafkaError, OSError) as error:
            return self._fail(record, error)
        return self._with_interceptors(delivery)

    async def _memory(self, size: int, deadline: Deadline) -> MemoryClaim:
        granted = asyncio.Event()
        with self._waiting(size, granted.set) as claim:
            async with asyncio.timeout(deadline.left_ms / 1e3):
                await granted.wait()
        return claim

    async def send_arrow(
        self,
        topic: str,
        table: pa.Table | pa.RecordBatch,
        *,
        value: str | None = "value",
        key: str | None = None,
        headers: str | None = None,
        timestamp: str | None = None,
        partition_by: str | int | None = None,
    ) -> TableDelivery:
        """Send every row of a table; the names are those of its columns.

        `value` and `key` are binary or string columns, `headers` a list of structs of key and
        value, `timestamp` a timestamp or milliseconds. Rows go to the partition of their key;
        `partition_by` names a column of partition numbers, or one to hash in the key's place, or
        is a partition itself. Batches are as large as a request unless `batch_size` is given.
        Waits for metadata and memory, up to `max.block.ms` at a time.
        """
        core = self._core
        deadline = Deadline(core.clock, core.config.max_block_ms)
        view = await core.topic(topic, None, deadline.left_ms)
        writer = TableWriter(core, view, Columns(value, key, headers, timestamp, partition_by))
        all_batches: list[Batch] = []
        for batches in writer.parts(table):
            deadline = Deadline(core.clock, core.config.max_block_ms)
            claim = await self._memory(sum(batch.reserved for batch in batches), deadline)
            try:
                self._intake.add(*batches)
            except BaseException:
                self._intake.give_up(claim)
                raise
            all_batches += batches
        return TableDelivery(all_batches)

    async def flush(self) -> None:
        """Wait until everything sent so far has its outcome."""
        await self._core.flush()

    async def partitions_for(self, topic: str) -> Sequence[PartitionView]:
        """The partitions of a topic; waits up to `max.block.ms` for them to be known."""
        view = await self._core.topic(topic, None, self._core.config.max_block_ms)
        return view.partitions

    def metrics(self) -> Mapping[str, float]:
        """Metrics under the names of Kafka's producer."""
        return self._core.metrics()

    # transactions

    async def init_transactions(self, *, keep_prepared: bool = False) -> PreparedTransaction | None:
        """Become the only producer with this transactional id; must be called first.

        An open transaction of the previous producer is aborted, unless `keep_prepared`: then it is
        returned, for `complete_transaction`.
        """
        return await self._core.transactions.init(keep_prepared=keep_prepared)

    def begin(self) -> None:
        """Begin a transaction."""
        self._core.transactions.begin()

    async def send_offsets(self, offsets: Offsets, group: GroupIdentity | str) -> None:
        """Commit offsets (the next to be read) of a consumer's group with the transaction."""
        await self._core.transactions.send_offsets(offsets, group_of(group))

    async def commit(self) -> None:
        """Make everything of the transaction visible at once."""
        await self._core.transactions.end(commit=True)

    async def abort(self) -> None:
        """Abort the transaction: read_committed consumers never see its records."""
        await self._core.transactions.end(commit=False)

    async def prepare_transaction(self) -> PreparedTransaction:
        """Leave the end of the transaction to `complete_transaction`, from any process."""
        return await self._core.transactions.prepare()

    async def complete_transaction(self, prepared: PreparedTransaction) -> bool:
        """Commit the prepared transaction if it is this one, abort it otherwise."""
        return await self._core.transactions.complete(prepared)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A block that is committed at its end, and aborted when it raises."""
        self.begin()
        try:
            yield self
        except BaseException:
            await self.abort()
            raise
        await self.commit()
