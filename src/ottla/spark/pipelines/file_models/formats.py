"""What a file says of keys and values: their format, and where its schema comes from.

Owns: the keys `format`, `schema` and `message`, and the schema registry. Never: asks one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Discriminator, Tag

from ottla.spark.pipelines import spec
from ottla.spark.pipelines.file_models.base import (
    TAG,
    FileModel,
    Options,
    Text,
    key,
    mistake_at,
    plain_text,
)
from ottla.spark.pipelines.file_values import read_text
from ottla.spark.pipelines.variables import YamlValue

FROM_REGISTRY: Final = "registry"
LATEST: Final = "latest"
COLUMNS: Final = "columns"
SCHEMA_FILES: Final = (".json", ".avsc", ".ddl", ".sql", ".desc", ".pb")


class RegistryKeys(FileModel):
    """A schema registry with Confluent's API."""

    SHORT: ClassVar[str | None] = "url"

    url: Text = key("Its address, as in http://localhost:8081; several by commas.")
    options: Options = key("Settings of its client: basic.auth.user.info, ssl.ca.location, ….", {})

    def registry(self) -> spec.Registry:
        return spec.Registry(self.url, self.options)


def _version(value: object) -> str:
    text = plain_text(value)
    if text != LATEST and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"{text!r}: expected latest, or a number from 1")
    return text


class RegistrySchemaKeys(FileModel):
    """A schema of the registry: values begin with the number of the one they were written with."""

    subject: Text | None = key("Whose schema values are read with; default: TOPIC-value.", None)
    version: Annotated[str, BeforeValidator(_version)] = key("latest, or a number.", LATEST)
    file: Text | None = key("A file with the schema that values are read with, instead.", None)
    registry: RegistryKeys | None = key("Default: the file's.", None)


def _or_registry(value: object) -> object:
    return {} if value == FROM_REGISTRY else value


def _schema_kind(value: YamlValue) -> str:
    is_mapping = isinstance(value, Mapping | RegistrySchemaKeys)
    return TAG + (FROM_REGISTRY if is_mapping else "text")


SchemaKeys = Annotated[
    Annotated[Text, Tag(f"{TAG}text")]
    | Annotated[RegistrySchemaKeys, Tag(f"{TAG}{FROM_REGISTRY}")],
    Discriminator(_schema_kind),
    BeforeValidator(_or_registry),
]


class FormatDefaults(NamedTuple):
    """What a format is relative to: the file's folder and registry, and the subject by default."""

    folder: Path
    registry: RegistryKeys | None
    subject: str | None


class FormatKeys(FileModel):
    """How keys are written."""

    format: Literal["avro", "json", "protobuf"] = key("How keys are written.", "avro")
    schema_: SchemaKeys = key("registry, or a schema of it.", RegistrySchemaKeys())
    message: Text = key("Protobuf only: the message type, as in shop.View.", "")

    def key_format(self, around: FormatDefaults) -> spec.Format:
        schema = self.schema_
        if isinstance(schema, str):
            if self.format != "avro":
                raise mistake_at("schema", "expected registry, or a schema of it")
            return spec.Format("avro", schema_text(schema, around.folder))
        return registry_format(self.format, schema, self.message, around)


def registry_format(
    kind: str, schema: RegistrySchemaKeys, message: str, around: FormatDefaults
) -> spec.Format:
    """A format whose values have a schema's number in front."""
    registry = schema.registry or around.registry
    if registry is None:
        raise mistake_at("schema", "requires registry: its address, at the top of the file")
    if kind not in ("avro", "json", "protobuf"):
        raise mistake_at("schema", f"a registry has no schemas of format {kind}")
    if message and kind != "protobuf":
        raise mistake_at("message", f"not allowed for format {kind}")
    value_format = spec.Format(
        "json-schema" if kind == "json" else kind, message=message, registry=registry.registry()
    )
    if schema.file is not None:
        if kind == "protobuf" and not message:
            raise mistake_at("message", "missing: which message of the file, as in shop.View")
        text = schema_text(schema.file, around.folder, is_path=kind == "protobuf")
        return replace(value_format, schema=text)
    subject = schema.subject or around.subject
    if subject is None:
        raise mistake_at("schema.subject", "missing: there is more than one topic")
    version = None if schema.version == LATEST else int(schema.version)
    return replace(value_format, subject=subject, version=version)


def schema_text(schema: str, folder: Path, *, is_path: bool = False) -> str:
    """A schema as it stands, or the text of the file that is named; its path where asked for."""
    if not schema.endswith(SCHEMA_FILES):
        return schema
    path = folder / schema
    if not path.is_file():
        raise mistake_at("schema", f"there is no file {path}")
    if is_path:
        return str(path.resolve())
    try:
        return read_text(path)
    except OSError as error:
        raise mistake_at("schema", f"cannot read {path}: {error.strerror}") from None


class EncodingKeys(FileModel):
    """A key or value of a topic, written with a schema of the registry."""

    format: Literal["avro", "json", "protobuf"] = key("How it is written.", "avro")
    of: Text = key("An expression for what is written; default for values: all columns.", "")
    schema_: Text = key(
        "columns: made of the columns, and registered; latest: of the subject; or a file.", COLUMNS
    )
    subject: Text | None = key("Under which the schema is; default: TOPIC-value, TOPIC-key.", None)
    registry: RegistryKeys | None = key("Default: the file's.", None)

    def encoding(self, around: FormatDefaults) -> spec.Encoding:
        registry = self.registry or around.registry
        if registry is None:
            raise mistake_at("registry", "missing: its address, here or at the top of the file")
        subject = self.subject or around.subject
        if subject is None:
            raise mistake_at("subject", "missing: name_of names more than one topic")
        schema = self.schema_
        if schema not in (COLUMNS, LATEST):
            if self.format == "protobuf":
                raise mistake_at("schema", f"{schema!r}: expected columns or latest for protobuf")
            schema = schema_text(schema, around.folder)
        kind = "json-schema" if self.format == "json" else self.format
        return spec.Encoding(kind, registry.registry(), subject, self.of, schema)


def _encoding_kind(value: YamlValue) -> str:
    return TAG + ("encoding" if isinstance(value, Mapping | EncodingKeys) else "text")


PartKeys = Annotated[
    Annotated[Text, Tag(f"{TAG}text")] | Annotated[EncodingKeys, Tag(f"{TAG}encoding")],
    Discriminator(_encoding_kind),
]
"""A key or value of a sink: an expression, or an encoding."""
