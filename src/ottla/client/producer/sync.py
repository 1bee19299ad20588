"""The producer for programs without an event loop.

Owns: the thread that the core runs on, and the blocking of callers. Every method may be called from
any thread.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        delivery = producer.send("orders", b"one")
        print(delivery.result(timeout=10))
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ottla.client.cluster_view import PartitionView, TopicView
from ottla.client.errors import KafkaError
from ottla.client.interceptors import ProducerInterceptor, ProducerRecord
from ottla.client.loop_thread import LoopThread
from ottla.client.offsets import Offsets
from ottla.client.partitioners import Partitioner
from ottla.client.producer.buffer.batch import RECORD_OVERHEAD, Batch
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

MAX_BACKLOG: Final = 4
"""Closed batches the sender may be behind before callers of `send` wait for it."""
YIELD_S: Final = 0.01


class Producer(SendPath):
    """Sends records. To be shared: every method may be called from any thread.

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
        self._thread = LoopThread("ottla-producer")
        self._thread.start()
        self._thread.run(self._core.open())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Send buffered records for up to `timeout` seconds, then close; 0 drops them.

        Called from a callback, on the producer's own thread, it drops them and returns at once.
        """
        if self._thread.is_current:
            self._core.stop()
            return
        if not self._thread.is_stopped:
            self._thread.run(self._core.close(None if timeout is None else int(timeout * 1e3)))
        self._thread.stop()

    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        headers: GivenHeaders = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Buffer a record; blocks only for metadata and memory, up to `max.block.ms`.

        The returned `Delivery` has the outcome: `result(timeout)` waits for it,
        `add_done_callback` does not.
        """
        if type(value) is bytes and headers is None and partition is None and timestamp_ms is None:
            if key is None:
                # `_append_fast`, inlined: 650 ns a record instead of 707.
                delivery = Delivery()
                stamp_ns = self._stamp_ns()
                self._acquire()
                try:
                    batch = self._open.get(topic)
                    if batch is not None:
                        room = batch.room - len(value) - RECORD_OVERHEAD
                        if room >= 0:
                            batch.room = room
                            values = batch.values
                            delivery.batch = batch
                            delivery.index = len(values)
                            values.append(value)
                            batch.timestamps.append(stamp_ns)
                            if batch.keys is not None:
                                batch.keys.append(None)
                            return delivery
                finally:
                    self._release()
            elif type(key) is bytes:
                keyed = self._append_fast_keyed(topic, value, key)
                if keyed is not None:
                    return keyed
        record = checked_record(
            topic, value, key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        return self._send_slow(record)

    def _send_slow(self, original: ProducerRecord) -> Delivery:
        """The slow path: interceptors, metadata, serializers, partitioner; may block."""
        self._intake.check()
        record = self._intercept(original)
        core = self._core
        deadline = Deadline(core.clock, core.config.max_block_ms)
        try:
            prepared = self._intake.prepare(
                self._topic(record.topic, record.partition, deadline), record
            )
            delivery = self._intake.append(prepared)
            while delivery is None:
                delivery = self._intake.append(
                    prepared, self._memory(self._intake.needed_bytes(prepared), deadline)
                )
        except (KafkaError, OSError) as error:
            return self._fail(record, error)
        if self._intake.queues.backlog > MAX_BACKLOG:
            self._yield_to_sender()
        return self._with_interceptors(delivery)

    def _yield_to_sender(self) -> None:
        """Wait until the sender has checked the queues once.

        A thread that computes without a pause releases the interpreter's lock only every few
        milliseconds: the sender would wait that long after every system call.
        """
        if not self._thread.is_current:
            stepped = self._core.stepped
            stepped.clear()
            self._core.wake()
            stepped.wait(YIELD_S)

    def _topic(self, topic: str, partition: int | None, deadline: Deadline) -> TopicView:
        view = self._core.cluster.metadata.topics.get(topic)
        if view is not None and (partition is None or partition < len(view.partitions)):
            return view
        return self._thread.run(self._core.topic(topic, partition, deadline.left_ms))

    def _memory(self, size: int, deadline: Deadline) -> MemoryClaim:
        granted = threading.Event()
        with self._waiting(size, granted.set) as claim:
            if not granted.wait(deadline.left_ms / 1e3):
                raise TimeoutError
        return claim

    def send_arrow(
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
        Blocks for metadata and memory, up to `max.block.ms` at a time.
        """
        core = self._core
        deadline = Deadline(core.clock, core.config.max_block_ms)
        view = self._topic(topic, None, deadline)
        writer = TableWriter(core, view, Columns(value, key, headers, timestamp, partition_by))
        all_batches: list[Batch] = []
        for batches in writer.parts(table):
            deadline = Deadline(core.clock, core.config.max_block_ms)
            claim = self._memory(sum(batch.reserved for batch in batches), deadline)
            try:
                self._intake.add(*batches)
            except BaseException:
                self._intake.give_up(claim)
                raise
            all_batches += batches
        return TableDelivery(all_batches)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent so far has its outcome; TimeoutError after `timeout`."""
        self._thread.run(self._core.flush(), timeout)

    def partitions_for(self, topic: str) -> Sequence[PartitionView]:
        """The partitions of a topic; waits up to `max.block.ms` for them to be known."""
        deadline = Deadline(self._core.clock, self._core.config.max_block_ms)
        return self._topic(topic, None, deadline).partitions

    def metrics(self) -> Mapping[str, float]:
        """Metrics under the names of Kafka's producer."""
        return self._core.metrics()

    # transactions

    def init_transactions(self, *, keep_prepared: bool = False) -> PreparedTransaction | None:
        """Become the only producer with this transactional id; must be called first.

        An open transaction of the previous producer is aborted, unless `keep_prepared`: then it is
        returned, for `complete_transaction`.
        """
        return self._thread.run(self._core.transactions.init(keep_prepared=keep_prepared))

    def begin(self) -> None:
        """Begin a transaction."""
        self._core.transactions.begin()

    def send_offsets(self, offsets: Offsets, group: GroupIdentity | str) -> None:
        """Commit offsets (the next to be read) of a consumer's group with the transaction."""
        self._thread.run(self._core.transactions.send_offsets(offsets, group_of(group)))

    def commit(self) -> None:
        """Make everything of the transaction visible at once."""
        self._thread.run(self._core.transactions.end(commit=True))

    def abort(self) -> None:
        """Abort the transaction: read_committed consumers never see its records."""
        self._thread.run(self._core.transactions.end(commit=False))

    def prepare_transaction(self) -> PreparedTransaction:
        """Leave the end of the transaction to `complete_transaction`, from any process."""
        return self._thread.run(self._core.transactions.prepare())

    def complete_transaction(self, prepared: PreparedTransaction) -> bool:
        """Commit the prepared transaction if it is this one, abort it otherwise."""
        return self._thread.run(self._core.transactions.complete(prepared))

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A block that is committed at its end, and aborted when it raises."""
        self.begin()
        try:
            yield self
        except BaseException:
            self.abort()
            raise
        self.commit()
