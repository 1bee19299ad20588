"""Keys and values to bytes and back.

Owns: the usual ones. A serializer is any callable that takes a value and returns bytes, a
deserializer one that takes bytes and returns a value; neither is called for None, a tombstone.

Avro and Protobuf each need a package, imported when one of them is created.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.client.errors import SerializationError
from ottla.model.errors import UserError

if TYPE_CHECKING:
    from google.protobuf.message import Message

Serializer: TypeAlias = Callable[[Any], bytes]
Deserializer: TypeAlias = Callable[[bytes], Any]
AvroSchema: TypeAlias = str | list[Any] | dict[Any, Any]
DecodedValue: TypeAlias = Any
"""Of whatever type was encoded."""

_LONG: Final = struct.Struct(">q")
_INT: Final = struct.Struct(">i")
_DOUBLE: Final = struct.Struct(">d")


def to_bytes(value: bytes | bytearray | memoryview) -> bytes:
    """Bytes as they are."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise SerializationError(
        f"expected bytes, got {type(value).__name__}; set a serializer, such as "
        "value_serializer=ottla.serializers.from_str"
    )


def from_str(value: str) -> bytes:
    """Text in UTF-8."""
    if not isinstance(value, str):
        raise SerializationError(f"expected str, got {type(value).__name__}")
    return value.encode()


def to_str(data: bytes) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise SerializationError(f"cannot decode as UTF-8: {error}") from None


def from_int(value: int) -> bytes:
    """A whole number in 8 bytes, as Java's LongSerializer writes it."""
    return _pack(_LONG, value, int)


def from_int32(value: int) -> bytes:
    """A whole number in 4 bytes, as Java's IntegerSerializer writes it."""
    return _pack(_INT, value, int)


def from_float(value: float) -> bytes:
    """A number in 8 bytes, as Java's DoubleSerializer writes it."""
    return _pack(_DOUBLE, value, int | float)


def to_int(data: bytes) -> int:
    """A whole number of 4 or 8 bytes."""
    return int(_unpack(_INT if len(data) == _INT.size else _LONG, data))


def to_float(data: bytes) -> float:
    return float(_unpack(_DOUBLE, data))


def from_json(value: object) -> bytes:
    """Anything `json.dumps` takes, without spaces, in UTF-8."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise SerializationError(f"cannot encode as JSON: {error}") from None


def to_json(data: bytes) -> DecodedValue:
    try:
        return json.loads(data)
    except ValueError as error:
        raise SerializationError(f"cannot decode as JSON: {error}") from None


class Avro:
    """Avro records of one schema, without a container: `serialize` and `deserialize`.

    `written_with` is the writer's schema, if it differs.
    """

    def __init__(
        self,
        schema: Mapping[str, object] | str,
        *,
        written_with: Mapping[str, object] | str | None = None,
    ) -> None:
        try:
            import fastavro
        except ImportError:
            raise UserError("Avro needs fastavro: pip install 'ottla[avro]'") from None
        self._avro = fastavro
        self._schema = fastavro.parse_schema(_schema(schema))
        writer_schema = schema if written_with is None else written_with
        self._writers = fastavro.parse_schema(_schema(writer_schema))

    def serialize(self, value: object) -> bytes:
        out = BytesIO()
        try:
            self._avro.schemaless_writer(out, self._schema, value)
        except (
            Exception
        ) as error:  # fastavro has no exception class for a value that does not match
            raise SerializationError(f"value does not match the Avro schema: {error}") from error
        return out.getvalue()

    def deserialize(self, data: bytes) -> DecodedValue:
        try:
            return self._avro.schemaless_reader(BytesIO(data), self._writers, self._schema)
        except Exception as error:
            raise SerializationError(f"cannot decode with this Avro schema: {error}") from error


class Protobuf:
    """Protobuf messages of one class: `serialize` and `deserialize`."""

    def __init__(self, message: type[Message]) -> None:
        try:
            from google.protobuf import message as protobuf
        except ImportError:
            raise UserError("Protobuf needs protobuf: pip install 'ottla[protobuf]'") from None
        if not (isinstance(message, type) and issubclass(message, protobuf.Message)):
            raise UserError(f"Protobuf: expected a message class, got {message!r}")
        self._message = message
        self._errors = (protobuf.DecodeError, protobuf.EncodeError)

    def serialize(self, value: Message) -> bytes:
        if not isinstance(value, self._message):
            raise SerializationError(
                f"expected {self._message.__name__}, got {type(value).__name__}"
            )
        try:
            return bytes(value.SerializeToString())
        except self._errors as error:
            raise SerializationError(f"cannot encode {self._message.__name__}: {error}") from None

    def deserialize(self, data: bytes) -> Message:
        message = self._message()
        try:
            message.ParseFromString(bytes(data))
        except self._errors as error:
            raise SerializationError(
                f"cannot decode as {self._message.__name__}: {error}"
            ) from None
        return message


def _schema(schema: Mapping[str, object] | str) -> AvroSchema:
    if not isinstance(schema, str):
        return dict(schema)
    try:
        parsed: AvroSchema = json.loads(schema)
        return parsed
    except ValueError as error:
        raise UserError(f"Avro: cannot parse the schema as JSON: {error}") from None


def _pack(form: struct.Struct, value: object, kind: type | UnionType) -> bytes:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise SerializationError(f"expected a number, got {type(value).__name__}")
    try:
        return form.pack(value)
    except struct.error:
        raise SerializationError(f"{value} does not fit in {form.size} bytes") from None


def _unpack(form: struct.Struct, data: bytes) -> float:
    try:
        number: float = form.unpack(data)[0]
        return number
    except struct.error:
        raise SerializationError(f"expected {form.size} bytes, got {len(data)}") from None
