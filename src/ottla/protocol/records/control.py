"""Control records: how the end of a transaction is written into a partition.

A control batch is transactional, is marked as control, and holds one record whose key says what it
is. Consumers never see it; it only takes an offset. Deciding when to write one is the transaction
coordinator's.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from ottla.protocol.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    CorruptBatch,
)
from ottla.protocol.records.small_batch import build_plain

KEY: Final = Struct(">hh")
VALUE: Final = Struct(">hi")
CURRENT_VERSION: Final = 0


_USUAL: Final = Struct(">5shhchic")
"""A record with a key and a value of these sizes, of its batch's own time, without headers."""
_AROUND: Final = (b"\x20\0\0\0\x08", b"\x0c", b"\0")
USUAL_SIZE: Final = HEADER_SIZE + _USUAL.size


class ControlType(IntEnum):
    """What a control record says. Readers skip numbers they do not know."""

    ABORT = 0
    COMMIT = 1


_KINDS: Final = {kind.value: kind for kind in ControlType}


class EndTxnMarker(NamedTuple):
    """A transaction ended here; the epoch fences coordinators that were replaced since."""

    type: ControlType
    coordinator_epoch: int


def encode_marker(marker: EndTxnMarker) -> tuple[bytes, bytes]:
    """Key and value of the record that carries this marker."""
    return (
        KEY.pack(CURRENT_VERSION, marker.type),
        VALUE.pack(CURRENT_VERSION, marker.coordinator_epoch),
    )


def control_type(key: bytes | None) -> int:
    """What a control record's key says it is: a `ControlType`, or a number newer than this."""
    try:
        version, kind = KEY.unpack_from(key or b"")
    except StructError:
        raise CorruptBatch("control record key is too short") from None
    if version < 0:
        raise CorruptBatch(f"control record key has version {version}")
    return int(kind)


def decode_marker(key: bytes | None, value: bytes | None) -> EndTxnMarker | None:
    """The marker in a control record, or None where the record is of another type.

    Later versions of key and value may be longer; what is here stays in front.
    """
    kind = control_type(key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    try:
        version, coordinator_epoch = VALUE.unpack_from(value or b"")
    except StructError:
        raise CorruptBatch("control record value is too short") from None
    if version < 0:
        raise CorruptBatch(f"control record value has version {version}")
    return EndTxnMarker(ControlType(kind), coordinator_epoch)


def usual_marker(batch: bytes | memoryview) -> EndTxnMarker | None:
    """The marker of a control batch of the one shape that coordinators write.

    None for any other, which has to be read record by record.
    """
    if len(batch) != USUAL_SIZE or batch[ATTRIBUTES_AT + 1] & CODEC_BITS:
        return None
    before, key_version, kind, between, version, coordinator_epoch, after = _USUAL.unpack_from(
        batch, HEADER_SIZE
    )
    is_usual = (before, between, after) == _AROUND and key_version >= 0 and version >= 0
    return EndTxnMarker(_KINDS[kind], coordinator_epoch) if is_usual and kind in _KINDS else None


def build_marker(
    marker: EndTxnMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends this producer's transaction in one partition."""
    return build_plain(
        (encode_marker(marker),),
        timestamp,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
