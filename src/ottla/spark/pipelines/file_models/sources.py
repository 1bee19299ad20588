"""What a file says of its sources: topics, and files.

Owns: the keys of a source, and the files of schemas that it names. Never: connects, or reads data.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Discriminator, Tag, WithJsonSchema

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
from ottla.spark.pipelines.file_values import read_text
from ottla.spark.pipelines.variables import YamlValue

SUBSCRIPTIONS: Final = {"topic": "subscribe", "pattern": "subscribePattern", "assign": "assign"}
FILES: Final = ("parquet", "csv", "json")
NEVER: Final = "never"
PERIOD: Final = re.compile(r"([1-9]\d*) (second|minute|hour)s?")
UNITS_MS: Final = {"second": 1_000, "minute": 60_000, "hour": 3_600_000}


class Defaults(NamedTuple):
    """What the top of a file sets for its sources, and the folder that paths are relative to."""

    pipeline: str
    bootstrap: str
    folder: Path


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
    schema_: Text | None = key("DDL, a schema, or a file of one beside this file.", None)
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
        format = self._format(defaults.folder)
        try:
            stream_source(options)
        except UserError as error:
            raise mistake_at("options", str(error)) from None
        return spec.Source(name, options, format, watermark_of(self.watermark), self.dead_letter)

    def _format(self, folder: Path) -> spec.Format:
        kind, schema = self.format, self.schema_
        if kind in ("string", "binary"):
            if schema is not None:
                raise mistake_at("schema", f"not allowed for format {kind}")
            return spec.Format(kind)
        if schema is None:
            raise mistake_at("schema", "missing")
        if schema.endswith((".json", ".avsc", ".ddl", ".sql", ".desc", ".pb")):
            path = folder / schema
            schema = str(path.resolve()) if kind == "protobuf" else _file(path)
            if not path.is_file():
                raise mistake_at("schema", f"there is no file {path}")
        elif kind == "protobuf":
            raise mistake_at(
                "schema", "expected a file of descriptors (protoc --descriptor_set_out=x.desc)"
            )
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
            schema = _file(defaults.folder / schema)
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


KINDS: Final = (*SUBSCRIPTIONS, *FILES)


def _has_one_kind(value: object) -> object:
    one_of(value, KINDS)
    return value


def _kind(value: YamlValue) -> str:
    return TAG + ("topics" if one_of(value, KINDS) in SUBSCRIPTIONS else "files")


SourceKeys = Annotated[
    Annotated[TopicSourceKeys, Tag(f"{TAG}topics")] | Annotated[FileSourceKeys, Tag(f"{TAG}files")],
    Discriminator(_kind),
    BeforeValidator(_has_one_kind),
]


def _file(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise mistake_at("schema", f"there is no file {path}") from None
    except OSError as error:
        raise mistake_at("schema", f"cannot read {path}: {error.strerror}") from None
