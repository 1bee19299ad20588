"""A reply as plain data, without what must differ between two brokers.

Owns: which fields differ by nature (ids that a broker makes up, ports, times, sizes of disks), and
what stands for them. Never: knows which side it looks at.

An id becomes `<kind> n`, numbered as they appear in a scenario, so that two replies that name the
same thing twice still have to name it twice.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final
from uuid import UUID

from ottla.protocol.encode import ms
from ottla.protocol.records.header import HEADER, HEADER_SIZE

# Field -> kind of id. Numbers below 1, and empty texts, say that there is none: they are kept.
IDS: Final = {
    "topic_id": "topic id",
    "member_id": "member id",
    "leader": "member id",
    "cluster_id": "cluster id",
    "producer_id": "producer id",
    "session_id": "session id",
    "log_dir": "log dir",
    "port": "port",
    "group_epoch": "group epoch",  # Apache Kafka's groups begin with 2, ours with 1
    "assignment_epoch": "group epoch",
    "member_epoch": "group epoch",
}
TIMES: Final = frozenset({"log_append_time", "transaction_start_time", "last_timestamp"})
SIZES: Final = frozenset({"total_bytes", "usable_bytes"})  # of a disk that others use, too
SETS: Final = frozenset({"subscribed_topic_names"})  # whose order is no promise
RECENT_MS: Final = 1_750_000_000_000
RANGE_OF_TIMES: Final = re.compile(r"\[-?\d{12,}, -?\d{12,}\]")  # around the time of the request
TEXTS: Final = frozenset({"error_message", "batch_index_error_message"})


class Labels:
    """The ids that one side has shown in a scenario, each with the label that stands for it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, value: Any) -> str:
        if (kind, value) not in self._known:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._known[kind, value] = f"<{kind} {self._counts[kind]}>"
        return self._known[kind, value]

    def in_text(self, text: str) -> str:
        """A message with the ids in it replaced."""
        for (_, value), label in self._known.items():
            if isinstance(value, str | UUID) and len(str(value)) > 8:
                text = text.replace(str(value), label)
        return RANGE_OF_TIMES.sub("[<range of times>]", text)


def plain(entity: Any, labels: Labels) -> dict[str, Any]:
    """The fields of a reply, or of a struct in it."""
    return {
        field.name: _value(field.name, getattr(entity, field.name), labels)
        for field in fields(entity)
    }


def _value(name: str, value: Any, labels: Labels) -> Any:
    if is_dataclass(value):
        return plain(value, labels)
    if isinstance(value, tuple):
        values = sorted(value) if name in SETS else value
        return [_value(name, inner, labels) for inner in values]
    if name in IDS:
        return _id(IDS[name], value, labels)
    if isinstance(value, bytes | bytearray | memoryview):
        return _batches(bytes(value), labels) if name == "records" else bytes(value).hex()
    return _simple(name, value, labels)


def _simple(name: str, value: Any, labels: Labels) -> Any:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, datetime | timedelta):
        value = ms(value)
    if name in TIMES and isinstance(value, int) and value > RECENT_MS:
        return "<now>"
    if name in SIZES and value > 0:
        return "<size>"
    if isinstance(value, UUID):
        return labels.of("uuid", value)
    return labels.in_text(value) if isinstance(value, str) and name in TEXTS else value


def _id(kind: str, value: Any, labels: Labels) -> Any:
    if isinstance(value, int):
        return value if value < 1 else labels.of(kind, int(value))
    if value is None or not str(value):
        return value
    return labels.of(kind, value)


def _batches(data: bytes, labels: Labels) -> list[dict[str, Any]]:
    """Record batches: the header's fields, and the bytes of the records."""
    found: list[dict[str, Any]] = []
    at = 0
    while len(data) - at >= HEADER_SIZE:
        header = dict(zip(HEADER_NAMES, HEADER.unpack_from(data, at), strict=True))
        end = at + 12 + header["length"]
        header["records"] = data[at + HEADER_SIZE : end].hex()
        if header["producer_id"] > 0:
            header["producer_id"] = labels.of("producer id", header["producer_id"])
            header["crc"] = "<over an id>"
        for name in ("base_timestamp", "max_timestamp"):
            if header[name] > RECENT_MS:
                header[name], header["crc"] = "<now>", "<over a time>"
        found.append(header)
        at = end
    if at < len(data):
        found.append({"base_offset": "cut", "records": data[at:].hex()})
    return found


HEADER_NAMES: Final = (
    "base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "count",
)  # fmt: skip
