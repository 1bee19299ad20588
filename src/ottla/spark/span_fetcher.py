"""The fetches of one span of one partition, each while the one before is being decoded.

Owns: which broker is asked, how much is asked for, and what is done about records that are no
longer there. Never: looks into a batch, except for where the last one ends.

`Fetcher` is used from a thread that waits; what it asks runs on the connection's own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Final, NamedTuple

from ottla.client.admin.offsets import OffsetSpec, list_offsets
from ottla.client.cluster import Cluster
from ottla.client.consumer.fetch.record_decoder import end_of
from ottla.client.errors import refusal
from ottla.client.retry import Deadline, retrying
from ottla.config.client import ClientConfig, ConsumerConfig
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import Offset
from ottla.protocol.encode import writer_of
from ottla.protocol.hot.fetch_response import PartitionResponse, read_fetch_response
from ottla.protocol.schema import MessageKind, message
from ottla.spark.connection import Connection
from ottla.spark.offsets import DataLost, Loss
from ottla.spark.plan import Span

FETCH: Final = 1
BY_NAME: Final = 12
"""Later versions call topics by an id, which a topic made anew under its name would not have."""
LEAST_BYTES: Final = 256 << 10
MOST_BYTES: Final = 16 << 20
"""Asked for at a time unless `kafka.max.partition.fetch.bytes` says otherwise. A task reads one
partition: the consumer's careful megabyte would only cost round trips."""
FIRST_GUESS_BYTES: Final = 256
"""What a record weighs, before any was seen."""

log = logging.getLogger(__name__)


class Chunk(NamedTuple):
    """What one fetch brought, to be read from `start` on."""

    start: Offset
    fetched: PartitionResponse


class _Settings(NamedTuple):
    """What a consumer's settings say of fetches; others have the defaults."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_bytes: int | None
    rack: str

    @staticmethod
    def of(config: ClientConfig) -> _Settings:
        consumer = config if isinstance(config, ConsumerConfig) else ConsumerConfig()
        has_limit = consumer.is_given("max_partition_fetch_bytes")
        return _Settings(
            consumer.fetch_max_wait_ms,
            consumer.fetch_min_bytes,
            consumer.fetch_max_bytes,
            consumer.max_partition_fetch_bytes if has_limit else None,
            consumer.client_rack,
        )


class Fetcher:
    """Reads one span, from its start to its end."""

    def __init__(
        self,
        connection: Connection,
        span: Span,
        *,
        read_committed: bool,
        fail_on_data_loss: bool,
        timeout_ms: int,
    ) -> None:
        self._connection = connection
        self._settings = _Settings.of(connection.config)
        self._span = span
        self._read_committed = read_committed
        self._fails = fail_on_data_loss
        self._timeout_ms = timeout_ms
        self._replica = -1
        self._seen_bytes = 0
        self._seen_offsets = 0

    def chunks(self) -> Iterator[Chunk]:
        """Every fetch of the span, in order; DataLost where records are gone and must not be."""
        coming = self._ahead(self._span.start)
        try:
            while coming is not None:
                chunk = coming.result()
                if chunk is None:
                    return
                # Ask for the next before this one is decoded: broker and reader side by side.
                coming = self._ahead(self._after(chunk))
                yield chunk
        finally:
            if coming is not None:
                coming.cancel()

    def _ahead(self, offset: Offset) -> Future[Chunk | None] | None:
        return self._connection.submit(self.fetch(offset)) if offset < self._span.end else None

    def _after(self, chunk: Chunk) -> Offset:
        """Where the records of a chunk end; what is counted there tells how much to ask for."""
        after = max(end_of(chunk.fetched.records)[0], chunk.start)
        self._seen_bytes += len(chunk.fetched.records)
        self._seen_offsets += after - chunk.start
        return after

    async def fetch(self, offset: Offset) -> Chunk | None:
        """Records from `at` on; None where the rest of the span is lost and may be."""
        deadline = Deadline(self._connection.clock, self._timeout_ms)
        cluster = self._connection.session.cluster
        tp = self._span.partition
        while not deadline.is_over:
            try:
                # Codes here are the fetched partition's, given by its leader or a replica.
                response = await retrying(
                    cluster, partial(self._fetch_once, cluster, offset), deadline, [tp.topic]
                )
            except TimeoutError:
                break
            except KafkaError as failure:
                if failure.code is not ErrorCode.offset_out_of_range:
                    raise
                response = None
            if response is None:
                moved = await self._skip_lost(offset)
                if moved is None:
                    return None
                offset = moved
            elif response.records:
                return Chunk(offset, response)
        if not self._fails and await self._is_end_of_log(offset):
            loss = Loss(tp, f"the log ends at {offset}, before {self._span.end}")
            log.warning("data loss: %s; continuing, because failOnDataLoss is false", loss)
            return None
        raise TimeoutError(
            f"{tp}: no record at offset {offset} within {self._timeout_ms} ms, reading up to "
            f"{self._span.end} (kafkaConsumer.pollTimeoutMs)"
        )

    async def _fetch_once(self, cluster: Cluster, offset: Offset) -> PartitionResponse | None:
        tp = self._span.partition
        node = self._replica if self._replica >= 0 else await cluster.leader(tp)
        if node < 0:
            if tp.topic not in cluster.metadata.topics:
                return None
            raise refusal(ErrorCode.leader_not_available, f"{tp} has no leader")
        version = await cluster.version(node, FETCH, at_most=BY_NAME)
        frame = await cluster.ask_bytes(node, FETCH, version, [self._body(version, offset)])
        reply = read_fetch_response(version, frame)
        if reply.error_code:
            raise refusal(reply.error_code)
        [response] = reply.partitions
        self._replica = response.preferred_replica
        if response.error_code:
            code = ErrorCode(response.error_code)
            raise refusal(code, f"cannot fetch {tp} at offset {offset}: {code.name}")
        return response

    async def _is_end_of_log(self, offset: Offset) -> bool:
        """Whether the leader says that nothing follows; a leader that is away says nothing."""
        tp = self._span.partition
        listed = (await list_offsets(self._connection.session, {tp: OffsetSpec.LATEST})).succeeded
        return tp in listed and (listed[tp].offset or 0) <= offset

    async def _skip_lost(self, offset: Offset) -> Offset | None:
        """Where to go on after records that are gone; None if nothing of the span is left."""
        span = self._span
        outcomes = await list_offsets(
            self._connection.session, {span.partition: OffsetSpec.EARLIEST}
        )
        listed = outcomes.succeeded.get(span.partition)
        starts = None if listed is None else listed.offset
        if starts is None:
            reason, moved = "the partition no longer exists", None
        elif offset < starts:
            reason = f"offset {offset} is below the log start offset {starts}"
            moved = starts if starts < span.end else None
        else:
            reason, moved = f"offset {offset} is beyond the end of the log", None
        loss = Loss(span.partition, reason)
        if self._fails:
            raise DataLost([loss])
        log.warning("data loss: %s; continuing, because failOnDataLoss is false", loss)
        return moved

    def _body(self, version: int, offset: Offset) -> bytes:
        size = self.bytes_for(self._span.end - offset)
        partition = {
            "partition": self._span.partition.partition,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": size,
        }
        out = bytearray()
        writer_of(message(FETCH, version, MessageKind.REQUEST))(
            {
                "replica_id": -1,
                "max_wait": self._settings.max_wait_ms,
                "min_bytes": self._settings.min_bytes,
                "max_bytes": max(size, self._settings.max_bytes),
                "isolation_level": int(self._read_committed),
                "session_id": 0,
                "session_epoch": -1,
                "topics": [{"topic": self._span.partition.topic, "partitions": [partition]}],
                "forgotten_topics_data": [],
                "rack_id": self._settings.rack,
            },
            out,
        )
        return bytes(out)

    def bytes_for(self, left: int) -> int:
        """Enough for what is left of the span, and not much more."""
        if self._settings.partition_bytes is not None:
            return self._settings.partition_bytes
        bytes_per_offset = (
            self._seen_bytes / self._seen_offsets if self._seen_offsets else FIRST_GUESS_BYTES
        )
        return min(max(int(left * bytes_per_offset * 1.1), LEAST_BYTES), MOST_BYTES)
