"""What a file says of its sources: topics, files, and tables of databases.

Owns: the keys of a source, and the files of schemas that it names. Never: connects, or reads data.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema, model_validator

from ottla.model.errors import UserError
from ottla.spark.options import stream_source
from ottla.spark.parsed_options import parse_duration_ms
from ottla.spark.pipelines import spec
from ottla.spark.pipelines.file_models.base import (
    PLAIN,
    TAG,
    FileModel,
    Options,
    Text,
    Texts,
    key,
    mistake_at,
    one_of,
    plain_text,
)
from ottla.spark.pipelines.file_models.formats import (
    SCHEMA_FILES,
    FormatDefaults,
    FormatKeys,
    RegistryKeys,
    RegistrySchemaKeys,
    SchemaKeys,
    registry_format,
    schema_text,
)
from ottla.spark.pipelines.variables import YamlValue

SUBSCRIPTIONS: Final = {"topic": "subscribe", "pattern": "subscribePattern", "assign": "assign"}
FILES: Final = ("parquet", "csv", "json")
DATABASE: Final = "database"
DRIVERS: Final = ("postgresql", "postgres", "sqlite")
"""Schemes of addresses whose driver is known."""
NEVER: Final = "never"
PERIOD: Final = re.compile(r"([1-9]\d*) (second|minute|hour)s?")
UNITS_MS: Final = {"second": 1_000, "minute": 60_000, "hour": 3_600_000}


class Defaults(NamedTuple):
    """What the top of a file sets for its sources, and the folder that paths are relative to."""

    pipeline: str
    bootstrap: str
    folder: Path
    registry: RegistryKeys | None = None


class WatermarkKeys(FileModel):
    """How late events may come, by the column that says when they happened."""

    column: Text = key("The column that says when an event happened.")
    delay: Text = key("How late events may come, as in 30 seconds.")

    def watermark(self) -> spec.Watermark:
        return spec.Watermark(self.column, self.delay)


def watermark_of(keys: WatermarkKeys | None) -> spec.Watermark | None:
    return None if keys is None else keys.watermark()


class TopicSourceKeys(FileModel):
    """A view of the records of topics."""

    topic: Texts | None = key("A topic, or a list of them.", None)
    pattern: Text | None = key("Topics whose names match this pattern anywhere.", None)
    assign: Text | None = key('Partitions, as in {"views": [0, 1]}.', None)
    bootstrap: Text | None = key("host:port of brokers; default: the file's.", None)
    from_: Text = key("earliest, latest, or JSON as in Spark's startingOffsets.", "earliest")
    format: Literal["json", "avro", "protobuf", "string", "binary"] = key(
        "How values are written.", "binary"
    )
    schema_: SchemaKeys | None = key(
        "DDL, a schema, a file of one beside this file; or registry, or a schema of it.", None
    )
    key_: FormatKeys | None = key("How keys are written; they become the column key.", None)
    tombstones: Literal["refuse", "keep"] = key(
        "keep: a record without a value is a row whose columns are null.", "refuse"
    )
    message: Text = key("Protobuf only: the message type, as in shop.View.", "")
    watermark: WatermarkKeys | None = key("How late events may come.", None)
    dead_letter: Text | None = key("The topic for values that do not decode.", None)
    options: Options = key('Any option of format("ottla").', {})

    def source(self, name: str, defaults: Defaults) -> spec.Source:
        """UserError or ValidationError for a schema that cannot be read, or a wrong option."""
        kind = next(each for each in SUBSCRIPTIONS if getattr(self, each) is not None)
        topics = getattr(self, kind)
        options = {
            "kafka.bootstrap.servers": self.bootstrap or defaults.bootstrap,
            SUBSCRIPTIONS[kind]: topics if isinstance(topics, str) else ",".join(topics),
            "startingOffsets": self.from_,
            "includeHeaders": "true",
            "kafka.group.id": f"{defaults.pipeline}-{name}",
            **self.options,
        }
        around = FormatDefaults(defaults.folder, defaults.registry, self._subject("value"))
        format = self._format(around)
        key_format = None
        if self.key_ is not None:
            key_format = self.key_.key_format(around._replace(subject=self._subject("key")))
        try:
            stream_source(options)
        except UserError as error:
            raise mistake_at("options", str(error)) from None
        watermark = watermark_of(self.watermark)
        return spec.Source(name, options, format, watermark, self.dead_letter, key_format)

    def _subject(self, part: str) -> str | None:
        """As Confluent's serializers name it, where there is one topic."""
        topics = self.topic or ()
        return f"{topics[0]}-{part}" if len(topics) == 1 else None

    def _format(self, around: FormatDefaults) -> spec.Format:
        kind, schema = self.format, self.schema_
        if isinstance(schema, RegistrySchemaKeys):
            format = registry_format(kind, schema, self.message, around)
            return replace(format, tombstones=self.tombstones == "keep")
        if kind in ("string", "binary"):
            if schema is not None:
                raise mistake_at("schema", f"not allowed for format {kind}")
            return spec.Format(kind)
        if schema is None:
            raise mistake_at("schema", "missing")
        if kind == "protobuf" and not schema.endswith(SCHEMA_FILES):
            raise mistake_at(
                "schema", "expected a file of descriptors (protoc --descriptor_set_out=x.desc)"
            )
        schema = schema_text(schema, around.folder, is_path=kind == "protobuf")
        if kind == "protobuf" and not self.message:
            raise mistake_at(
                "message", "missing: name the message type of the values, as in shop.View"
            )
        if kind != "protobuf" and self.message:
            raise mistake_at("message", f"not allowed for format {kind}")
        return spec.Format(kind, schema, self.message, self.tombstones == "keep")


def _period_ms(value: object) -> int | str:
    """`10 minutes`, as triggers are written, `10m`, or `never`."""
    text = plain_text(value)
    match = PERIOD.fullmatch(text)
    if match is not None:
        return int(match[1]) * UNITS_MS[match[2]]
    try:
        return text if text == NEVER else parse_duration_ms("", text)
    except UserError as error:
        raise ValueError(str(error)) from None


class FileSourceKeys(FileModel):
    """A view of the rows of files: a stream of them as they come, or a table."""

    parquet: Text | None = key("A folder or file of Parquet.", None)
    csv: Text | None = key("A folder or file of CSV.", None)
    json_: Text | None = key("A folder or file of JSON, an object on each line.", None)
    schema_: Text = key("DDL, or a .ddl file beside this file.", "")
    options: Options = key("Any option of Spark's reader.", {})
    watermark: WatermarkKeys | None = key("How late events may come.", None)
    refresh: Annotated[int | str | None, BeforeValidator(_period_ms), WithJsonSchema(PLAIN)] = key(
        "A table for joins that is loaded again this often, or never.", None
    )

    def source(self, name: str, defaults: Defaults) -> spec.FileSource:
        """UserError or ValidationError for a schema that cannot be read, or is missing."""
        paths = {"parquet": self.parquet, "csv": self.csv, "json": self.json_}
        kind, path = next((kind, path) for kind, path in paths.items() if path is not None)
        schema = self.schema_
        if schema.endswith((".ddl", ".sql")):
            schema = schema_text(schema, defaults.folder)
        if not schema and kind != "parquet":
            raise mistake_at(
                "schema", f"missing: {kind} files have no types, as in user STRING, n INT"
            )
        if self.refresh is not None and self.watermark is not None:
            raise mistake_at("watermark", "not allowed with refresh: a table has no late rows")
        return spec.FileSource(
            name,
            kind,
            path,
            schema,
            self.options,
            watermark_of(self.watermark),
            is_table=self.refresh is not None,
            refresh_ms=self.refresh if isinstance(self.refresh, int) else None,
        )


class DatabaseSourceKeys(FileModel):
    """A view of a database's rows: a table for joins."""

    database: Text = key("Its address, as in postgresql://user:password@host/name.")
    table: Text | None = key("The table that is read.", None)
    query: Text | None = key("The query whose rows are read, in the database's SQL.", None)
    driver: Text = key("The ADBC driver, where the address does not say which.", "")
    options: Options = key("Any option of the driver.", {})
    schema_: Text = key("DDL that rows are cast to; default: what the database says.", "")
    refresh: Annotated[int | str | None, BeforeValidator(_period_ms), WithJsonSchema(PLAIN)] = key(
        "How often it is loaded again, as in 10 minutes, or never.", NEVER
    )

    @model_validator(mode="after")
    def _has_rows(self) -> DatabaseSourceKeys:
        one_of({"table": self.table, "query": self.query}, ("table", "query"))
        scheme = self.database.partition("://")[0]
        if not self.driver and scheme not in DRIVERS:
            known = ", ".join(f"{name}://" for name in DRIVERS)
            raise mistake_at("database", f"expected an address that begins with {known}; or driver")
        return self

    def source(self, name: str, defaults: Defaults) -> spec.DatabaseSource:
        schema = self.schema_
        if schema.endswith((".ddl", ".sql")):
            schema = schema_text(schema, defaults.folder)
        return spec.DatabaseSource(
            name,
            self.database,
            self.query or f"SELECT * FROM {self.table}",
            self.driver,
            schema,
            self.options,
            self.refresh if isinstance(self.refresh, int) else None,
        )


KINDS: Final = (*SUBSCRIPTIONS, *FILES, DATABASE)


def _has_one_kind(value: object) -> object:
    one_of(value, KINDS)
    return value


def _kind(value: YamlValue) -> str:
    kind = one_of(value, KINDS)
    if kind == DATABASE:
        return TAG + DATABASE
    return TAG + ("topics" if kind in SUBSCRIPTIONS else "files")


SourceKeys = Annotated[
    Annotated[TopicSourceKeys, Tag(f"{TAG}topics")]
    | Annotated[FileSourceKeys, Tag(f"{TAG}files")]
    | Annotated[DatabaseSourceKeys, Tag(f"{TAG}{DATABASE}")],
    Discriminator(_kind),
    BeforeValidator(_has_one_kind),
]
