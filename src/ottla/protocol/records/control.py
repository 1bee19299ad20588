"""Control records: the markers of committed and aborted transactions.

A control batch is transactional, has the control bit, and one record whose key has the type.
Consumers never see it; it only takes an offset. The transaction coordinator decides when to write
one.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from ottla.protocol.records.batch import build_plain
from ottla.protocol.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    CorruptBatch,
)

KEY: Final = Struct(">hh")
VALUE: Final = Struct(">hi")
CURRENT_VERSION: Final = 0


_USUAL: Final = Struct(">5shhchic")
"""A record with a key and a value of these sizes, its batch's timestamp, and no headers."""
_AROUND: Final = (b"\x20\0\0\0\x08", b"\x0c", b"\0")
USUAL_SIZE: Final = HEADER_SIZE + _USUAL.size


class ControlType(IntEnum):
    """The type of a control record. Readers skip unknown types."""

    ABORT = 0
    COMMIT = 1


_KINDS: Final = {kind.value: kind for kind in ControlType}


class EndTxnMarker(NamedTuple):
    """The end of a transaction; the epoch fences coordinators that were replaced."""

    type: ControlType
    coordinator_epoch: int


def encode_marker(marker: EndTxnMarker) -> tuple[bytes, bytes]:
    """Key and value of the control record of this marker."""
    return (
        KEY.pack(CURRENT_VERSION, marker.type),
        VALUE.pack(CURRENT_VERSION, marker.coordinator_epoch),
    )


def control_type(key: bytes | None) -> int:
    """The type in a control record's key: a `ControlType`, or an unknown newer number."""
    try:
        version, kind = KEY.unpack_from(key or b"")
    except StructError:
        raise CorruptBatch("control record key is too short") from None
    if version < 0:
        raise CorruptBatch(f"control record key has invalid version {version}")
    return int(kind)


def decode_marker(key: bytes | None, value: bytes | None) -> EndTxnMarker | None:
    """The marker of a control record; None if the record has another type.

    Later versions of key and value may have more fields at the end.
    """
    kind = control_type(key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    try:
        version, coordinator_epoch = VALUE.unpack_from(value or b"")
    except StructError:
        raise CorruptBatch("control record value is too short") from None
    if version < 0:
        raise CorruptBatch(f"control record value has invalid version {version}")
    return EndTxnMarker(ControlType(kind), coordinator_epoch)


def usual_marker(batch: bytes | memoryview) -> EndTxnMarker | None:
    """The marker of a control batch with the layout that coordinators write.

    None for any other layout, which has to be decoded in full.
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
