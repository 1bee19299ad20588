"""How `kafka-console-consumer.sh` shows records, by its formatter's properties.

Pure: a record to bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ottla.cli.kafka.offset_formatters import as_json, as_text
from ottla.client import serializers
from ottla.client.consumer.record import Record
from ottla.model.errors import UserError

Formatter: TypeAlias = Callable[[Record[bytes, bytes]], bytes]
TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}
NO_TIMESTAMP: Final = "NO_TIMESTAMP"
NO_HEADERS: Final = b"NO_HEADERS"
DESERIALIZERS: Final[Mapping[str, Callable[[bytes], object]]] = {
    "StringDeserializer": lambda data: data.decode(errors="replace"),
    "ByteArrayDeserializer": lambda data: data.decode(errors="surrogateescape"),
    "BytesDeserializer": lambda data: data.decode(errors="surrogateescape"),
    "IntegerDeserializer": lambda data: int.from_bytes(data, "big", signed=True),
    "LongDeserializer": lambda data: int.from_bytes(data, "big", signed=True),
    "ShortDeserializer": lambda data: int.from_bytes(data, "big", signed=True),
    "DoubleDeserializer": serializers.to_float,
}


def formatter(name: str | None, properties: Mapping[str, str]) -> Formatter:
    """The formatter of this class, in any of the packages it has lived in."""
    short = (name or "DefaultMessageFormatter").rpartition(".")[2].rpartition("$")[2]
    match short:
        case "DefaultMessageFormatter":
            return default(properties)
        case "LoggingMessageFormatter":
            return default({"print.timestamp": "true", "print.key": "true", **properties})
        case "NoOpMessageFormatter":
            return lambda record: b""
        case "OffsetsMessageFormatter":
            return as_text if name is not None and "$" in name else as_json
        case _:
            raise UserError(
                f"--formatter {name}: expected DefaultMessageFormatter, LoggingMessageFormatter, "
                "NoOpMessageFormatter or OffsetsMessageFormatter"
            )


def default(properties: Mapping[str, str]) -> Formatter:
    """What Kafka's DefaultMessageFormatter prints: the parts that are asked for, then the value."""

    def wants(part: str, otherwise: str = "false") -> bool:
        return properties.get(f"print.{part}", otherwise).strip().lower() == "true"

    def text(name: str, otherwise: str) -> bytes:
        return properties.get(name, otherwise).encode()

    null = text("null.literal", "null")
    between, end = text("key.separator", "\t"), text("line.separator", "\n")
    comma = text("headers.separator", ",")
    read_key = _reader(properties.get("key.deserializer"), null)
    read_value = _reader(properties.get("value.deserializer"), null)
    read_header = _reader(properties.get("headers.deserializer"), null)
    parts: list[Formatter] = []
    if wants("timestamp"):
        parts.append(_timestamp)
    if wants("partition"):
        parts.append(lambda record: f"Partition:{record.partition}".encode())
    if wants("offset"):
        parts.append(lambda record: f"Offset:{record.offset}".encode())
    if wants("epoch"):
        parts.append(_epoch)
    if wants("headers"):
        parts.append(lambda record: _headers(record, comma, read_header))
    if wants("key"):
        parts.append(lambda record: read_key(record.key))
    if wants("value", "true"):
        parts.append(lambda record: read_value(record.value))
    return lambda record: between.join(part(record) for part in parts) + (end if parts else b"")


def _timestamp(record: Record[bytes, bytes]) -> bytes:
    kind = TYPES.get(record.timestamp_type)
    return (NO_TIMESTAMP if kind is None else f"{kind}:{record.timestamp}").encode()


def _epoch(record: Record[bytes, bytes]) -> bytes:
    epoch = record.leader_epoch
    return f"Epoch:{epoch if epoch >= 0 else 'NOT_PRESENT'}".encode()


def _headers(
    record: Record[bytes, bytes], comma: bytes, read: Callable[[bytes | None], bytes]
) -> bytes:
    pairs = [name.encode() + b":" + read(value) for name, value in record.headers]
    return comma.join(pairs) if pairs else NO_HEADERS


def _reader(name: str | None, null: bytes) -> Callable[[bytes | None], bytes]:
    """Bytes as they are, or what a deserializer of Kafka's makes of them."""
    if name is None:
        return lambda data: null if data is None else data
    short = name.rpartition(".")[2]
    if short not in DESERIALIZERS:
        raise UserError(f"deserializer {name}: expected one of {', '.join(DESERIALIZERS)}")
    read = DESERIALIZERS[short]
    return lambda data: null if data is None else str(read(data)).encode(errors="surrogateescape")
