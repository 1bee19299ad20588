"""JSON Schema: which Arrow type a schema becomes, and values of JSON as those types have them.

Owns: the reading of schemas, `$ref` within and between them included, and the conversion of times,
dates, decimals and bytes. Parts of a schema that have no single type (several alternatives) become
text: the JSON as it stands. Never: knows a registry.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.model.errors import UserError
from ottla.spark.pipelines.decoding.avro import References
from ottla.spark.pipelines.variables import YamlValue

if TYPE_CHECKING:
    import pyarrow as pa

JsonValue: TypeAlias = YamlValue
JsonSchema: TypeAlias = JsonValue
"""As `json.loads` gives it: a mapping, or true or false."""
PARSED_SCHEMAS: Final = 256
NO_TITLE: Final = "urn:value"
MAX_DEPTH: Final = 50


def arrow_type(schema: str, where: str, references: References = ()) -> pa.DataType:
    """The type of a whole value; UserError for what is not a schema."""
    try:
        root = json.loads(schema)
        others = {name: json.loads(text) for name, text in references}
    except ValueError as mistake:
        raise UserError(f"{where}.schema: not JSON: {mistake}") from None
    if not isinstance(root, Mapping):
        raise UserError(f"{where}.schema: expected a schema of an object")
    return _Types(others, where).of(root, root, 0)


class _Types:
    def __init__(self, others: Mapping[str, JsonSchema], where: str) -> None:
        self._others = others
        self._where = where

    def of(self, schema: JsonSchema, root: JsonSchema, depth: int) -> pa.DataType:
        import pyarrow as pa

        if depth > MAX_DEPTH:
            raise UserError(f"{self._where}.schema: recursive, which is not supported")
        if not isinstance(schema, Mapping):
            return pa.string()
        schema = _without_null(schema)
        if "$ref" in schema:
            return self._resolve_reference(schema["$ref"], root, depth)
        match schema.get("type"):
            case "object":
                return self._object(schema, root, depth)
            case "array":
                return pa.list_(self.of(schema.get("items", True), root, depth + 1))
            case "string":
                return _text_type(schema)
            case kind:
                plain = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
                return plain.get(kind, pa.string())

    def _object(self, schema: JsonSchema, root: JsonSchema, depth: int) -> pa.DataType:
        import pyarrow as pa

        properties = schema.get("properties")
        if properties:
            made = [(name, self.of(one, root, depth + 1)) for name, one in properties.items()]
            return pa.struct(made)
        more = schema.get("additionalProperties", True)
        return pa.map_(pa.string(), self.of(more, root, depth + 1))

    def _resolve_reference(self, reference: str, root: JsonSchema, depth: int) -> pa.DataType:
        name, _, pointer = reference.partition("#")
        if name and name not in self._others:
            raise UserError(f"{self._where}.schema: $ref {reference}: no such schema")
        found = root = self._others[name] if name else root
        for part in filter(None, pointer.split("/")):
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or part not in found:
                raise UserError(f"{self._where}.schema: $ref {reference}: no such part")
            found = found[part]
        return self.of(found, root, depth + 1)


def _without_null(schema: JsonSchema) -> JsonSchema:
    """A type or null as the type: every column may be null."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        rest = [kind for kind in kinds if kind != "null"]
        return {**schema, "type": rest[0] if len(rest) == 1 else None}
    for key in ("oneOf", "anyOf"):
        rest = [one for one in schema.get(key, ()) if one != {"type": "null"}]
        if len(rest) == 1:
            return rest[0]
    return schema


def _text_type(schema: JsonSchema) -> pa.DataType:
    import pyarrow as pa

    if schema.get("contentEncoding") == "base64":
        return pa.binary()
    match schema.get("format"):
        case "date-time":
            return pa.timestamp("us", tz="UTC")
        case "date":
            return pa.date32()
        case _:
            return pa.string()


@lru_cache(PARSED_SCHEMAS)
def validator(schema: str, references: References = ()) -> Callable[[JsonValue], None]:
    """Raises ValueError, in a line, for a value that a schema does not allow."""
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    parsed = json.loads(schema)
    others = [(name, json.loads(text)) for name, text in references]
    known: Registry[JsonSchema] = Registry().with_resources(
        [(name, Resource.from_contents(other, DRAFT7)) for name, other in others]
    )
    kind = validator_for(parsed)
    checker = kind(parsed, registry=known)

    def check(value: JsonValue) -> None:
        mistake = next(checker.iter_errors(value), None)
        if mistake is not None:
            path = ".".join(str(part) for part in mistake.absolute_path)
            raise ValueError(f"{path}: {mistake.message}" if path else mistake.message)

    return check


def from_json(value: JsonValue, kind: pa.DataType) -> object:
    """A value of JSON as its type has it."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, Mapping):
            raise ValueError(f"expected an object, got {type(value).__name__}")
        fields = (kind.field(index) for index in range(kind.num_fields))
        return {field.name: from_json(value.get(field.name), field.type) for field in fields}
    if pa.types.is_list(kind):
        return [from_json(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(name, from_json(one, kind.item_type)) for name, one in value.items()]
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_binary(kind):
        return b64decode(value)
    if pa.types.is_string(kind) and not isinstance(value, str):
        return json.dumps(value)
    return float(value) if pa.types.is_floating(kind) else value


def to_json(value: object) -> bytes:
    """A value of Python as JSON: times as ISO 8601, decimals as text, bytes in base64."""
    return json.dumps(value, default=_text, separators=(",", ":")).encode()


def _text(value: object) -> str:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case _:
            raise TypeError(f"{type(value).__name__} is not a value of JSON")
