"""Schemas made of the types of columns: Avro, JSON Schema, Protobuf. Pure.

Owns: which type of each format an Arrow type becomes. Every field may be null, with null as its
default, so that a column that is added later is a compatible change. Names of nested records are
made of their path: they do not depend on what else is in a schema.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ottla.model.errors import UserError
from ottla.spark.pipelines.variables import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

Schema: TypeAlias = YamlValue
"""Of Avro or of JSON Schema, as `json.dumps` takes it."""
T = TypeVar("T")
UNSUITED: Final = re.compile(r"[^A-Za-z0-9_]")
SYNTAX: Final = "proto3"


def schema_name(subject: str) -> str:
    """The name of a record, from its subject: letters, digits and _ only."""
    name = UNSUITED.sub("_", subject)
    return f"_{name}" if name[:1].isdigit() else name


def made_schema(kind: str, of: pa.DataType, name: str) -> str:
    """The schema that values of a type have, as the registry takes it."""
    match kind:
        case "avro":
            return json.dumps(_avro(of, name))
        case "json-schema":
            title = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name}
            return json.dumps({**title, **_json(of)})
        case "protobuf":
            return _protobuf(of, name)
        case other:
            raise AssertionError(other)


def _avro(of: pa.DataType, name: str) -> Schema:
    import pyarrow as pa

    if pa.types.is_struct(of):
        fields = [
            {
                "name": one.name,
                "type": ["null", _avro(one.type, f"{name}_{one.name}")],
                "default": None,
            }
            for one in _fields(of)
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_list(of):
        return {"type": "array", "items": ["null", _avro(of.value_type, f"{name}_item")]}
    if pa.types.is_map(of):
        return {"type": "map", "values": ["null", _avro(of.item_type, f"{name}_value")]}
    if pa.types.is_timestamp(of):
        local = "" if of.tz else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-micros"}
    if pa.types.is_date(of):
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_decimal(of):
        numbers = {"precision": of.precision, "scale": of.scale}
        return {"type": "bytes", "logicalType": "decimal", **numbers}
    return _plain(of, _avro_names(), name)


def _avro_names() -> dict[pa.DataType, str]:
    import pyarrow as pa

    return {
        pa.bool_(): "boolean",
        pa.int8(): "int",
        pa.int16(): "int",
        pa.int32(): "int",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.binary(): "bytes",
    }


def _json(of: pa.DataType) -> Schema:
    import pyarrow as pa

    if pa.types.is_struct(of):
        properties = {
            one.name: {"oneOf": [{"type": "null"}, _json(one.type)]} for one in _fields(of)
        }
        return {"type": "object", "properties": properties}
    if pa.types.is_list(of):
        return {"type": "array", "items": {"oneOf": [{"type": "null"}, _json(of.value_type)]}}
    if pa.types.is_map(of):
        values = {"oneOf": [{"type": "null"}, _json(of.item_type)]}
        return {"type": "object", "additionalProperties": values}
    if pa.types.is_timestamp(of):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_date(of):
        return {"type": "string", "format": "date"}
    if pa.types.is_binary(of):
        return {"type": "string", "contentEncoding": "base64"}
    if pa.types.is_integer(of):
        return {"type": "integer"}
    if pa.types.is_floating(of):
        return {"type": "number"}
    if pa.types.is_boolean(of):
        return {"type": "boolean"}
    return {"type": "string"}


def _protobuf(of: pa.DataType, name: str) -> str:
    import pyarrow as pa
    from google.protobuf import descriptor_pb2

    if not pa.types.is_struct(of):
        raise UserError(f"Protobuf has messages only, not {of}; use struct(…)")
    file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", syntax=SYNTAX)
    _Message(file.message_type.add(name=name), f".{name}").add_fields(of)
    if any(_has_timestamp(one.type) for one in _fields(of)):
        file.dependency.append("google/protobuf/timestamp.proto")
    return b64encode(file.SerializeToString()).decode()


class _Message:
    """A message that fields are added to; nested records become nested messages."""

    def __init__(self, message: DescriptorProto, path: str) -> None:
        self._message = message
        self._path = path

    def add_fields(self, of: pa.DataType) -> None:
        import pyarrow as pa

        for number, arrow_field in enumerate(_fields(of), 1):
            kind = arrow_field.type
            if pa.types.is_map(kind):
                self._add_map(arrow_field.name, number, kind)
                continue
            repeated = pa.types.is_list(kind)
            field = self._message.field.add(
                name=arrow_field.name, number=number, label=3 if repeated else 1
            )
            self._set_type(field, kind.value_type if repeated else kind)
            if not repeated and not field.type_name:
                field.proto3_optional = True
                field.oneof_index = len(self._message.oneof_decl)
                self._message.oneof_decl.add(name=f"_{arrow_field.name}")

    def _add_map(self, name: str, number: int, kind: pa.DataType) -> None:
        entry_name = "".join(part.title() for part in name.split("_")) + "Entry"
        entry = self._message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        inner = _Message(entry, f"{self._path}.{entry_name}")
        inner._set_type(entry.field.add(name="key", number=1, label=1), kind.key_type)
        inner._set_type(entry.field.add(name="value", number=2, label=1), kind.item_type)
        field = self._message.field.add(name=name, number=number, label=3, type=11)
        field.type_name = f"{self._path}.{entry_name}"

    def _set_type(self, field: FieldDescriptorProto, kind: pa.DataType) -> None:
        import pyarrow as pa

        if pa.types.is_timestamp(kind):
            field.type, field.type_name = 11, ".google.protobuf.Timestamp"
        elif pa.types.is_struct(kind):
            name = f"{field.name}_message"
            nested = self._message.nested_type.add(name=name)
            field.type, field.type_name = 11, f"{self._path}.{name}"
            _Message(nested, field.type_name).add_fields(kind)
        elif pa.types.is_decimal(kind) or pa.types.is_date(kind):
            field.type = 9  # as text
        else:
            field.type = _plain(kind, _protobuf_numbers(), field.name)


def _protobuf_numbers() -> dict[pa.DataType, int]:
    """FieldDescriptorProto.Type."""
    import pyarrow as pa

    return {
        pa.bool_(): 8,
        pa.int8(): 5,
        pa.int16(): 5,
        pa.int32(): 5,
        pa.int64(): 3,
        pa.float32(): 2,
        pa.float64(): 1,
        pa.string(): 9,
        pa.binary(): 12,
    }


def _has_timestamp(of: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_timestamp(of):
        return True
    return any(_has_timestamp(of.field(index).type) for index in range(of.num_fields))


def _fields(of: pa.DataType) -> list[pa.Field]:
    return [of.field(index) for index in range(of.num_fields)]


def _plain(of: pa.DataType, known: dict[pa.DataType, T], name: str) -> T:
    if of not in known:
        raise UserError(f"{name}: the type {of} has no counterpart in this format; cast it")
    return known[of]
