"""Requests of a producer to the coordinator of its transactions.

Owns: the requests that begin, extend and end transactions, each with retries until the deadline.
Never decides what a phase allows (`state`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from ottla.client.cluster import Cluster, ConnectionLane, CoordinatorKind
from ottla.client.errors import ErrorCode, KafkaError, UnsupportedVersion, refusal
from ottla.client.offsets import Offsets, checked_offsets
from ottla.client.producer.sender.sequences import Identity, Sequences
from ottla.client.producer.transactions.state import PreparedTransaction, Transaction
from ottla.client.retry import MOVED, Deadline, retrying
from ottla.config.client import ProducerConfig
from ottla.model.ids import TopicPartition
from ottla.protocol.schema import KioMessage

INIT_PRODUCER_ID: Final = 22
ADD_PARTITIONS_TO_TXN: Final = 24
ADD_OFFSETS_TO_TXN: Final = 25
END_TXN: Final = 26
TXN_OFFSET_COMMIT: Final = 28

FIRST_TWO_PHASE: Final = 6  # of InitProducerId
LAST_OF_CLIENTS: Final = 3  # of AddPartitionsToTxn: newer ones are for brokers
LAST_EXPLICIT_END: Final = 4  # of EndTxn: newer ones raise the epoch
LAST_EXPLICIT_OFFSETS: Final = 4  # of TxnOffsetCommit: newer ones add the group by themselves
FEATURE: Final = "transaction.version"
ADDS_ITSELF: Final = 2


class GroupIdentity(Protocol):
    """The group member whose offsets are committed; from `Consumer.group_metadata()`."""

    @property
    def group_id(self) -> str: ...
    @property
    def generation_id(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...


class CoordinatorRequests:
    """Requests of one transactional producer to its coordinator, and to group coordinators."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        transaction: Transaction,
        sequences: Sequences,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._transaction = transaction
        self._sequences = sequences

    async def begin(self, deadline: Deadline, *, keep_prepared: bool) -> None:
        """Get a producer id and epoch; earlier producers with this transactional id are fenced."""
        two_phase = self._config.transaction_two_phase_commit_enable
        fields = {
            "transactional_id": self._transaction.id,
            "transaction_timeout": 0x7FFF_FFFF
            if two_phase
            else self._config.transaction_timeout_ms,
            "producer_id": -1,
            "producer_epoch": -1,
            "enable2_pc": two_phase,
            "keep_prepared_txn": keep_prepared,
        }
        oldest = FIRST_TWO_PHASE if two_phase or keep_prepared else 0
        reply = await self._ask(INIT_PRODUCER_ID, fields, deadline, oldest=oldest)
        self._transaction.adds_partitions_implicitly = await self._level(deadline) >= ADDS_ITSELF
        self._sequences.begin(Identity(reply.producer_id, reply.producer_epoch))
        if keep_prepared and reply.ongoing_txn_producer_id >= 0:
            self._transaction.kept_prepared = PreparedTransaction(
                self._transaction.id,
                reply.ongoing_txn_producer_id,
                reply.ongoing_txn_producer_epoch,
            )

    async def raise_epoch(self, deadline: Deadline) -> None:
        """Bump the epoch after a failure, so that sequences restart at 0 (KIP-360)."""
        identity = self._sequences.identity
        fields = {
            "transactional_id": self._transaction.id,
            "transaction_timeout": self._config.transaction_timeout_ms,
            "producer_id": identity.producer_id,
            "producer_epoch": identity.epoch,
        }
        reply = await self._ask(INIT_PRODUCER_ID, fields, deadline)
        self._sequences.begin(Identity(reply.producer_id, reply.producer_epoch))

    async def add_partitions(self) -> None:
        """Add the partitions of waiting records to the transaction (before KIP-890)."""
        transaction = self._transaction
        to_add = frozenset(transaction.to_add)
        by_topic: dict[str, list[int]] = {}
        for tp in sorted(to_add):
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        topics = [{"name": name, "partitions": indexes} for name, indexes in by_topic.items()]
        node = await self._coordinator(Deadline(self._cluster.clock, self._config.max_block_ms))
        reply = await self._cluster.ask(
            node,
            ADD_PARTITIONS_TO_TXN,
            {
                "v3_and_below_transactional_id": transaction.id,
                "v3_and_below_producer_id": self._sequences.identity.producer_id,
                "v3_and_below_producer_epoch": self._sequences.identity.epoch,
                "v3_and_below_topics": topics,
            },
            at_most=LAST_OF_CLIENTS,
            lane=ConnectionLane.COORDINATION,
        )
        for topic in reply.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                self._on_partition_added(
                    TopicPartition(topic.name, result.partition_index), result.partition_error_code
                )

    def _on_partition_added(self, tp: TopicPartition, code: ErrorCode) -> None:
        transaction = self._transaction
        if not code:
            transaction.to_add.discard(tp)
            transaction.added.add(tp)
            transaction.is_started = True
            return
        self._forget_if_moved(
            code
        )  # the transaction coordinator's code, though it is a partition's
        error = refusal(code, f"{tp}: {code.name}")
        if not error.retriable and code is not ErrorCode.concurrent_transactions:
            transaction.to_add.discard(tp)
            transaction.fail(error)
        raise error  # the background task is retried, unless the error is final

    async def end(self, commit: bool, deadline: Deadline) -> None:
        """Commit or abort the transaction; with KIP-890 that bumps the epoch."""
        adds_partitions_implicitly = self._transaction.adds_partitions_implicitly
        fields = {**self._producer_fields(), "committed": commit}
        at_most = None if adds_partitions_implicitly else LAST_EXPLICIT_END
        reply = await self._ask(END_TXN, fields, deadline, at_most=at_most)
        if adds_partitions_implicitly and reply.producer_id >= 0:
            self._sequences.begin(Identity(reply.producer_id, reply.producer_epoch))

    async def send_offsets(
        self, offsets: Offsets, group: GroupIdentity, deadline: Deadline
    ) -> None:
        """Commit offsets of a group with the transaction."""
        adds_partitions_implicitly = self._transaction.adds_partitions_implicitly
        if not adds_partitions_implicitly:
            fields = {**self._producer_fields(), "group_id": group.group_id}
            await self._ask(ADD_OFFSETS_TO_TXN, fields, deadline)
        self._transaction.is_started = True

        # Error codes here are the group coordinator's, of its own partition or of one in the
        # request; CONCURRENT_TRANSACTIONS comes from the transaction coordinator (v5), and is
        # retriable as well. Only the group coordinator is looked up again.
        async def commit() -> None:
            node = await self._cluster.coordinator(
                CoordinatorKind.GROUP, group.group_id, timeout_ms=max(deadline.left_ms, 1)
            )
            try:
                reply = await self._cluster.ask(
                    node,
                    TXN_OFFSET_COMMIT,
                    {**self._producer_fields(), **_group(group), "topics": _offsets(offsets)},
                    at_most=None if adds_partitions_implicitly else LAST_EXPLICIT_OFFSETS,
                    lane=ConnectionLane.COORDINATION,
                )
            except OSError:
                self._cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
                raise
            for topic in reply.topics:
                for partition in topic.partitions:
                    if partition.error_code:
                        if partition.error_code in MOVED:
                            self._cluster.forget_coordinator(CoordinatorKind.GROUP, group.group_id)
                        tp = TopicPartition(topic.name, partition.partition_index)
                        code = partition.error_code
                        raise refusal(code, f"cannot commit the offset of {tp}: {code.name}")

        await retrying(self._cluster, commit, deadline)

    @property
    def is_two_phase(self) -> bool:
        return self._config.transaction_two_phase_commit_enable

    @property
    def prepared(self) -> PreparedTransaction:
        """Identifies the open transaction, to end it from another process."""
        return PreparedTransaction(self._transaction.id, *self._sequences.identity)

    async def _ask(
        self,
        key: int,
        fields: Mapping[str, object],
        deadline: Deadline,
        *,
        at_most: int | None = None,
        oldest: int = 0,
    ) -> KioMessage:
        # Error codes here are the transaction coordinator's: `MOVED`, loading, and
        # CONCURRENT_TRANSACTIONS until the markers of the previous transaction are written.
        async def attempt() -> KioMessage:
            node = await self._coordinator(deadline)
            try:
                versions = await self._cluster.versions(node, ConnectionLane.COORDINATION)
                if not versions.offers(key, oldest):
                    raise UnsupportedVersion("the broker does not support two-phase commit")
                reply = await self._cluster.ask(
                    node, key, fields, at_most=at_most, lane=ConnectionLane.COORDINATION
                )
            except OSError:
                self._cluster.forget_coordinator(CoordinatorKind.TXN, self._transaction.id)
                raise
            if reply.error_code:
                self._forget_if_moved(reply.error_code)
                raise _as_fenced(refusal(reply.error_code))
            return reply

        return await retrying(self._cluster, attempt, deadline)

    async def _level(self, deadline: Deadline) -> int:
        """The coordinator's level of `transaction.version`; retried, as it may be restarting."""

        async def look() -> int:
            features = await self._cluster.features(await self._coordinator(deadline))
            return features.get(FEATURE, 0)

        return await retrying(self._cluster, look, deadline)

    async def _coordinator(self, deadline: Deadline) -> int:
        return await self._cluster.coordinator(
            CoordinatorKind.TXN, self._transaction.id, timeout_ms=max(deadline.left_ms, 1)
        )

    def _forget_if_moved(self, code: ErrorCode) -> None:
        if code in MOVED:
            self._cluster.forget_coordinator(CoordinatorKind.TXN, self._transaction.id)

    def _producer_fields(self) -> dict[str, object]:
        identity = self._sequences.identity
        return {
            "transactional_id": self._transaction.id,
            "producer_id": identity.producer_id,
            "producer_epoch": identity.epoch,
        }


def _as_fenced(error: KafkaError) -> KafkaError:
    """A coordinator before 2.7 returns an invalid epoch for a fenced producer."""
    if error.code is ErrorCode.invalid_producer_epoch:
        return refusal(ErrorCode.producer_fenced)
    return error


def _group(group: GroupIdentity) -> dict[str, object]:
    return {
        "group_id": group.group_id,
        "generation_id": group.generation_id,
        "member_id": group.member_id,
        "group_instance_id": group.group_instance_id,
    }


def _offsets(offsets: Offsets) -> list[dict[str, object]]:
    by_topic: dict[str, list[dict[str, object]]] = {}
    for tp, offset in checked_offsets(offsets).items():
        by_topic.setdefault(tp.topic, []).append(
            {
                "partition_index": tp.partition,
                "committed_offset": offset.offset,
                "committed_leader_epoch": offset.leader_epoch,
                "committed_metadata": offset.metadata,
            }
        )
    return [{"name": name, "partitions": rows} for name, rows in by_topic.items()]
