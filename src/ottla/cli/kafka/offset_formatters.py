"""How `kafka-console-consumer.sh` shows the records of `__consumer_offsets`.

Pure. The formatter of Kafka's newer releases prints JSON, an older one, still named in many notes,
`[group,topic,partition]::OffsetAndMetadata(...)`. Records that are no offsets are passed over.
"""

from __future__ import annotations

import json
from struct import unpack_from
from typing import Final

from ottla.client.consumer.record import Record
from ottla.coordinator.group.records import NEVER, OFFSET_KEYS, OffsetChanged, decode

INT16: Final = 2


def as_text(record: Record[bytes, bytes]) -> bytes:
    """`[group,topic,0]::OffsetAndMetadata(offset=3, ...)`, as before Kafka 4."""
    change = _offset(record)
    if change is None:
        return b""
    key = f"[{change.group},{change.topic},{change.partition}]::"
    if change.committed is None:
        return f"{key}NULL\n".encode()
    committed = change.committed
    epoch = (
        "Optional.empty" if committed.leader_epoch < 0 else f"Optional[{committed.leader_epoch}]"
    )
    expires = "None" if committed.expires_ms == NEVER else f"Some({committed.expires_ms})"
    return (
        f"{key}OffsetAndMetadata(offset={committed.offset}, leaderEpoch={epoch}, "
        f"metadata={committed.metadata}, commitTimestamp={committed.committed_ms}, "
        f"expireTimestamp={expires})\n"
    ).encode()


def as_json(record: Record[bytes, bytes]) -> bytes:
    """`{"key":{"type":1,"data":{...}},"value":{"version":3,"data":{...}}}`, a line each."""
    change = _offset(record)
    if change is None or record.key is None:
        return b""
    key = {
        "type": _version(record.key),
        "data": {
            "group": change.group,
            "topic": change.topic,
            "partition": change.partition,
        },
    }
    value: object = None
    if change.committed is not None and record.value is not None:
        value = {"version": _version(record.value), "data": _data(record.value, change)}
    return json.dumps({"key": key, "value": value}, separators=(",", ":")).encode() + b"\n"


def _data(value: bytes, change: OffsetChanged) -> dict[str, object]:
    """The fields that this version of a value has, in their order."""
    committed = change.committed
    assert committed is not None
    version = _version(value)
    fields: dict[str, object] = {"offset": committed.offset}
    if version >= 3:
        fields["leaderEpoch"] = committed.leader_epoch
    fields |= {"metadata": committed.metadata, "commitTimestamp": committed.committed_ms}
    if version == 1:
        fields["expireTimestamp"] = committed.expires_ms
    return fields


def _offset(record: Record[bytes, bytes]) -> OffsetChanged | None:
    if record.key is None or len(record.key) < INT16 or _version(record.key) not in OFFSET_KEYS:
        return None
    change = decode(record.key, record.value)
    return change if isinstance(change, OffsetChanged) else None


def _version(data: bytes) -> int:
    (version,) = unpack_from(">h", data)
    return int(version)
