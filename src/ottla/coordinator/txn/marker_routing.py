"""Sends transaction markers to the leaders of their partitions.

Owns the choice between appending here and WriteTxnMarkers (27) to another broker. The leader is
looked up in the metadata cache at each attempt. Never decides that a transaction ends, and never
retries: the result is one error code for each partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.coordinator.deferred_reply import DeferredReply
from ottla.coordinator.request_queues import OtherBrokers, RequestQueues
from ottla.coordinator.txn.markers import Codes, TransactionEnd
from ottla.delay.slices import sliced
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition
from ottla.protocol.wire import Fields
from ottla.replica.hosted_partitions import HostedPartitions

WRITE_TXN_MARKERS: Final = 27
REPLY_MS: Final = 35_000
"""The receiver answers when the markers are committed, within 30 s."""
PARTITIONS_MAX: Final = 100
"""Partitions of one marker in a request; a transaction with more is sent in parts."""


class LocalMarkers(Protocol):
    """Appends markers to partitions led by this broker."""

    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Codes]: ...


class RemoteMarker(NamedTuple):
    """The marker of a transaction, for partitions of one broker."""

    end: TransactionEnd
    partitions: Sequence[TopicPartition]

    def all_with(self, code: ErrorCode) -> Codes:
        return dict.fromkeys(self.partitions, code)


class MarkerRouter:
    """The `MarkerWriter` of a broker's transaction coordinator."""

    def __init__(
        self,
        local: LocalMarkers,
        hosted: HostedPartitions,
        others: OtherBrokers,
    ) -> None:
        self._local = local
        self._hosted = hosted
        self._others = others
        self._queues = RequestQueues[RemoteMarker, Codes](
            "transaction markers",
            self._send,
            lambda marker: marker.all_with(ErrorCode.network_exception),
            others.spawn,
        )

    def write(
        self, marking: TransactionEnd, partitions: Iterable[TopicPartition]
    ) -> DeferredReply[Codes]:
        """Settled when every partition has its marker, or its error."""
        local: list[TopicPartition] = []
        remote: dict[BrokerId, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._other_leader(partition)
            if leader is None:
                local.append(partition)
            else:
                remote.setdefault(leader, []).append(partition)
        if not remote:
            return self._local.write(marking, local)
        parts = [
            (leader, RemoteMarker(marking, part))
            for leader, led in remote.items()
            for part in sliced(led, PARTITIONS_MAX)
        ]
        results = _Results(len(parts) + bool(local))
        if local:
            self._local.write(marking, local).then(results.add)
        for leader, marker in parts:
            self._queues.put(leader, marker, results.add)
        return results.all_written

    def close(self) -> None:
        self._queues.close()

    def _other_leader(self, key: TopicPartition) -> BrokerId | None:
        """The broker to send to; None if it is this one, or nobody leads the partition."""
        hosted = self._hosted.find(key)
        if hosted is not None and hosted.leadership is not None:
            return None
        partition = self._others.metadata.image.partition(key)
        if partition is None or partition.leader <= NO_BROKER:
            return None  # the local attempt yields the error
        broker_id = self._hosted.environment.broker_id
        return None if partition.leader == broker_id else partition.leader

    async def _send(self, broker: BrokerId, markers: Sequence[RemoteMarker]) -> Sequence[Codes]:
        fields = {"markers": [_fields(marker) for marker in markers]}
        reply = await self._others.ask(broker, WRITE_TXN_MARKERS, fields, REPLY_MS)
        by_producer: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for result in reply.body.markers:
            codes = by_producer.setdefault(result.producer_id, {})
            for topic in result.topics:
                for partition in topic.partitions:
                    key = TopicPartition(topic.name, partition.partition_index)
                    codes[key] = partition.error_code
        return [_codes(marker, by_producer.get(marker.end.producer.id, {})) for marker in markers]


def _fields(marker: RemoteMarker) -> Fields:
    end = marker.end
    topics: dict[str, list[int]] = {}
    for name, index in marker.partitions:
        topics.setdefault(name, []).append(index)
    return {
        "producer_id": end.producer.id,
        "producer_epoch": end.producer.epoch,
        "transaction_result": end.commit,
        "topics": [
            {"name": name, "partition_indexes": indexes} for name, indexes in topics.items()
        ],
        "coordinator_epoch": end.coordinator_epoch,
        "transaction_version": end.version,
    }


def _codes(marker: RemoteMarker, results: Mapping[TopicPartition, ErrorCode]) -> Codes:
    """A partition without a result is treated like one whose request was lost."""
    return {key: results.get(key, ErrorCode.network_exception) for key in marker.partitions}


class _Results:
    """The results of several writes, combined when the last is there."""

    __slots__ = ("_codes", "_markers_left", "all_written")

    def __init__(self, markers_left: int) -> None:
        self._codes: dict[TopicPartition, ErrorCode] = {}
        self._markers_left = markers_left
        self.all_written: DeferredReply[Codes] = DeferredReply()

    def add(self, codes: Codes) -> None:
        self._codes.update(codes)
        self._markers_left -= 1
        if not self._markers_left:
            self.all_written.settle(self._codes)
