"""The keys and values of `__transaction_state`, in Kafka's own formats.

Owns the encoding: keys of version 0; values of version 1, which Kafka writes since transactions v2,
and of version 0, which is only read. `docs/formats/internal-topics.md` describes them.

The classes are declared like kio's messages, so that kio's reader works for them. (It needs real
types: no postponed annotations in this module.)
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct, pack
from typing import ClassVar, Final, NamedTuple, TypeAlias

from kio.serial import entity_reader
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i64

from ottla.coordinator.outcome import CoordinatorRecord
from ottla.coordinator.txn.state import NO_EPOCH, Transaction, TxnState
from ottla.model.ids import NO_PRODUCER, ProducerId, TopicPartition
from ottla.protocol.encode import uvarint
from ottla.protocol.schema import KioStruct

VERSION: Final = Struct(">h")
KEY_VERSION: Final = 0
VALUE_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogKey:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = False
    transactional_id: str = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsV0:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = False
    topic: str = field(metadata={"kafka_type": "string"})
    partition_ids: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogValueV0:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = False
    producer_id: i64 = field(metadata={"kafka_type": "int64"})
    producer_epoch: i16 = field(metadata={"kafka_type": "int16"})
    transaction_timeout_ms: i32 = field(metadata={"kafka_type": "int32"})
    transaction_status: i8 = field(metadata={"kafka_type": "int8"})
    transaction_partitions: tuple[PartitionsV0, ...] | None
    transaction_last_update_timestamp_ms: i64 = field(metadata={"kafka_type": "int64"})
    transaction_start_timestamp_ms: i64 = field(metadata={"kafka_type": "int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsV1:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(1)
    __flexible__: ClassVar[bool] = True
    topic: str = field(metadata={"kafka_type": "string"})
    partition_ids: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogValueV1:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(1)
    __flexible__: ClassVar[bool] = True
    producer_id: i64 = field(metadata={"kafka_type": "int64"})
    previous_producer_id: i64 = field(metadata={"kafka_type": "int64", "tag": 0}, default=i64(-1))
    next_producer_id: i64 = field(metadata={"kafka_type": "int64", "tag": 1}, default=i64(-1))
    producer_epoch: i16 = field(metadata={"kafka_type": "int16"})
    transaction_timeout_ms: i32 = field(metadata={"kafka_type": "int32"})
    transaction_status: i8 = field(metadata={"kafka_type": "int8"})
    transaction_partitions: tuple[PartitionsV1, ...] | None
    transaction_last_update_timestamp_ms: i64 = field(metadata={"kafka_type": "int64"})
    transaction_start_timestamp_ms: i64 = field(metadata={"kafka_type": "int64"})
    client_transaction_version: i16 = field(
        metadata={"kafka_type": "int16", "tag": 2}, default=i16(0)
    )
    next_producer_epoch: i16 = field(metadata={"kafka_type": "int16", "tag": 3}, default=i16(-1))


class TransactionalIdExpired(NamedTuple):
    """A transactional id that has expired."""

    id: str


TransactionChange: TypeAlias = Transaction | TransactionalIdExpired

_VALUE_BEGINS: Final = Struct(">hqhib")
_VALUE_ENDS: Final = Struct(">qqB")
_LONG_TAG: Final = Struct(">BBq")
_SHORT_TAG: Final = Struct(">BBh")
_read_key: Final = entity_reader(TransactionLogKey)
_READ_VALUE: Final[dict[int, Callable[[bytes, int], tuple[KioStruct, int]]]] = {
    0: entity_reader(TransactionLogValueV0),
    1: entity_reader(TransactionLogValueV1),
}


def record_of(change: TransactionChange) -> CoordinatorRecord:
    value = None if isinstance(change, TransactionalIdExpired) else encode_value(change)
    return CoordinatorRecord(change, encode_key(change.id), value)


@lru_cache(maxsize=1_024)
def encode_key(transactional_id: str) -> bytes:
    """Cached, because a transaction is written three times: benchmarks/transactions.py."""
    name = transactional_id.encode()
    return VERSION.pack(KEY_VERSION) + VERSION.pack(len(name)) + name


def encode_value(txn: Transaction) -> bytes:
    """Hand-written, because a transaction is written three times: benchmarks/transactions.py."""
    (
        _, producer_id, epoch, state, timeout_ms, partitions, started_ms, updated_ms,
        version, _, previous_id, next_id, next_epoch,
    ) = txn  # fmt: skip
    tags = []  # the tagged fields that do not have their default: number, size, value
    if previous_id != NO_PRODUCER:
        tags.append(_LONG_TAG.pack(0, 8, previous_id))
    if next_id != NO_PRODUCER:
        tags.append(_LONG_TAG.pack(1, 8, next_id))
    if version:
        tags.append(_SHORT_TAG.pack(2, 2, version))
    if next_epoch != NO_EPOCH:
        tags.append(_SHORT_TAG.pack(3, 2, next_epoch))
    return b"".join(
        (
            _VALUE_BEGINS.pack(VALUE_VERSION, producer_id, epoch, timeout_ms, state),
            b"\0" if state is TxnState.EMPTY else _partitions(partitions),
            _VALUE_ENDS.pack(updated_ms, started_ms, len(tags)),
            *tags,
        )
    )


@lru_cache(maxsize=1_024)
def _partitions(partitions: frozenset[TopicPartition]) -> bytes:
    """Cached: a transaction is written twice with the same set, and the next often has it too."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    parts = [uvarint(len(topics) + 1)]
    for topic, indexes in topics.items():
        name = topic.encode()
        parts += (uvarint(len(name) + 1), name, uvarint(len(indexes) + 1))
        parts += (pack(f">{len(indexes)}i", *indexes), b"\0")
    return b"".join(parts)


def decode(key: bytes, value: bytes | None) -> TransactionChange | None:
    """The record's typed value; None if its key has an unknown version."""
    try:
        (version,) = VERSION.unpack_from(key)
        if version != KEY_VERSION:
            return None
        id = _read_key(key, VERSION.size)[0].transactional_id
        return TransactionalIdExpired(id) if value is None else _transaction(id, value)
    except ValueError:
        raise
    except Exception as fault:  # kio has one class for each way bytes can be wrong
        raise ValueError(f"malformed transaction log record: {fault!r}") from fault


def _transaction(id: str, value: bytes) -> Transaction:
    (version,) = VERSION.unpack_from(value)
    if version not in _READ_VALUE:
        raise ValueError(
            f"transaction log value of transactional id {id} has unsupported version {version}"
        )
    read = _READ_VALUE[version](value, VERSION.size)[0]
    tagged = {}
    if version >= 1:
        tagged = {
            "version": read.client_transaction_version,
            "previous_producer_id": ProducerId(read.previous_producer_id),
            "next_producer_id": ProducerId(read.next_producer_id),
            "next_epoch": read.next_producer_epoch,
        }
    return Transaction(
        id,
        ProducerId(read.producer_id),
        read.producer_epoch,
        TxnState(read.transaction_status),
        read.transaction_timeout_ms,
        frozenset(
            TopicPartition(topic.topic, index)
            for topic in read.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        read.transaction_start_timestamp_ms,
        read.transaction_last_update_timestamp_ms,
        **tagged,
    )
