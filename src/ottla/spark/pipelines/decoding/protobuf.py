"""Values in Protobuf, decoded on the workers: Spark's own reader is a jar.

Owns: which Arrow type a field becomes. Messages come from a file of descriptors
(`protoc --include_imports --descriptor_set_out=x.desc`) or from a registry, so no generated code is
needed. The descriptors are read on the driver and travel to the workers.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.worker_decoding import Decode, Row, with_fields
from ottla.spark.pipelines.spec import Format

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import Message
    from pyspark.sql import DataFrame

OWN_FILE: Final = "value.proto"
"""The name of a registry's schema among its descriptors; only those it refers to have others."""
FieldValue: TypeAlias = Any
"""Of the Python type that Protobuf has for the field's type."""


def decode_values(origin: DataFrame, format: Format, where: str) -> DataFrame:
    try:
        from google.protobuf import descriptor_pool  # noqa: F401
    except ImportError:
        raise UserError("format protobuf needs a package: pip install 'ottla[protobuf]'") from None
    descriptors = Path(format.schema).read_bytes()
    message = format.message
    fields = arrow_schema(descriptors, message, where)
    return with_fields(origin, fields, lambda: decoder(descriptors, message), where)


def decoder(descriptors: bytes, message: str) -> Decode:
    from google.protobuf import message_factory

    kind: type[Message] = message_factory.GetMessageClass(_descriptor(descriptors, message))

    def decode(value: bytes) -> Row:
        made = kind()
        made.ParseFromString(value)
        return _fields(made)

    return decode


def encoder(descriptors: bytes, message: str) -> Callable[[Row], bytes]:
    """Writes one value, from what JSON has for it."""
    from google.protobuf import json_format, message_factory

    kind: type[Message] = message_factory.GetMessageClass(_descriptor(descriptors, message))

    def encode(row: Row) -> bytes:
        value: bytes = json_format.ParseDict(row, kind()).SerializeToString()
        return value

    return encode


def registered_descriptors(text: str, references: Sequence[tuple[str, str]]) -> bytes:
    """Descriptors of a registry's schema, with those that it refers to: a serialized set."""
    from google.protobuf import descriptor_pb2

    found = descriptor_pb2.FileDescriptorSet()
    for name, referred in references:
        found.file.append(_file(referred, name))
    found.file.append(_file(text, OWN_FILE))
    serialized: bytes = found.SerializeToString()
    return serialized


def message_name(descriptors: bytes, indexes: Sequence[int] = (0,)) -> str:
    """The full name of a message of the last file, by its place among the messages."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    names = [file.package] if file.package else []
    messages = file.message_type
    for index in indexes:
        names.append(messages[index].name)
        messages = messages[index].nested_type
    return ".".join(names)


def message_indexes(descriptors: bytes, message: str) -> tuple[int, ...]:
    """The place of a message in the last file."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    path = message.removeprefix(f"{file.package}." if file.package else "").split(".")
    messages, indexes = file.message_type, []
    for name in path:
        index = [each.name for each in messages].index(name)
        indexes.append(index)
        messages = messages[index].nested_type
    return tuple(indexes)


def _file(text: str, name: str) -> FileDescriptorProto:
    from google.protobuf import descriptor_pb2

    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(text, validate=True))
    except Exception:
        raise UserError(
            "the registry returned a Protobuf schema as text; expected descriptors, which "
            "?format=serialized asks for: name a file of descriptors instead (schema.file)"
        ) from None
    file.name = name
    return file


def arrow_schema(descriptors: bytes, message: str, where: str) -> pa.Schema:
    import pyarrow as pa

    try:
        descriptor = _descriptor(descriptors, message)
    except Exception as mistake:
        raise UserError(f"{where}: message {message}: {mistake}") from None
    return pa.schema([(one.name, _arrow(one, ())) for one in descriptor.fields])


def _descriptor(descriptors: bytes, message: str) -> Descriptor:
    from google.protobuf import descriptor_pb2, descriptor_pool

    found = descriptor_pb2.FileDescriptorSet()
    found.ParseFromString(descriptors)
    pool = descriptor_pool.DescriptorPool()
    there = {file.name for file in found.file}
    for file in found.file:
        for name in file.dependency:
            if name not in there:  # types that come with Protobuf
                there.add(name)
                pool.Add(_well_known(name))
        pool.Add(file)
    return pool.FindMessageTypeByName(message)


def _well_known(name: str) -> FileDescriptorProto:
    from importlib import import_module

    from google.protobuf import descriptor_pb2

    path = name.removesuffix(".proto").replace("/", ".")
    if not path.startswith("google.protobuf."):
        raise UserError(f"{name} is imported, and not among the descriptors")
    file = descriptor_pb2.FileDescriptorProto()
    import_module(f"{path}_pb2").DESCRIPTOR.CopyToProto(file)
    return file


def _arrow(field: FieldDescriptor, above: tuple[str, ...]) -> pa.DataType:
    import pyarrow as pa

    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        return pa.map_(_arrow(key, above), _arrow(value, above))
    one = _single(field, above)
    return pa.list_(one) if field.is_repeated else one


def _single(field: FieldDescriptor, above: tuple[str, ...]) -> pa.DataType:
    import pyarrow as pa

    if field.message_type is not None:
        name = field.message_type.full_name
        if name == "google.protobuf.Timestamp":
            return pa.timestamp("us", tz="UTC")
        if name in above:
            raise UserError(f"{name} is recursive; recursive messages are not supported")
        inner = field.message_type.fields
        return pa.struct([(one.name, _arrow(one, (*above, name))) for one in inner])
    return {
        field.CPPTYPE_INT32: pa.int32(),
        field.CPPTYPE_INT64: pa.int64(),
        field.CPPTYPE_UINT32: pa.int64(),
        field.CPPTYPE_UINT64: pa.decimal128(20),
        field.CPPTYPE_DOUBLE: pa.float64(),
        field.CPPTYPE_FLOAT: pa.float32(),
        field.CPPTYPE_BOOL: pa.bool_(),
        field.CPPTYPE_ENUM: pa.string(),
        field.CPPTYPE_STRING: pa.binary() if field.type == field.TYPE_BYTES else pa.string(),
    }[field.cpp_type]


def _fields(message: Message) -> Row:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: FieldDescriptor) -> object:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of = field.message_type.fields_by_name["value"]
        return [(key, _plain(value[key], of)) for key in value]
    if field.is_repeated:
        return [_plain(one, field) for one in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _plain(value, field)


def _plain(value: FieldValue, field: FieldDescriptor) -> object:
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    if field.message_type is None:
        return value
    if field.message_type.full_name == "google.protobuf.Timestamp":
        from datetime import UTC

        return value.ToDatetime(tzinfo=UTC)
    return _fields(value)
