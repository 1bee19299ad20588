"""What a file says of its sinks: which view, and where its rows go.

Owns: the ways to write a target, short ones included (`topic: clean-views`). Never: opens one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ottla.model.errors import UserError
from ottla.spark.options import sink as sink_options
from ottla.spark.pipelines import spec
from ottla.spark.pipelines.file_models.base import (
    Duration,
    FileModel,
    Options,
    Text,
    Texts,
    key,
    mistake_at,
    one_of,
    whole_number,
)
from ottla.spark.pipelines.file_models.formats import EncodingKeys, FormatDefaults, PartKeys
from ottla.spark.pipelines.file_models.sources import Defaults
from ottla.spark.pipelines.variables import YamlValue

TARGETS: Final = ("topic", "parquet", "csv", "json", "delta", "iceberg", "console")
HOUR_MS: Final = 3_600_000

Count = Annotated[int, whole_number(0), WithJsonSchema({"type": "integer", "minimum": 0})]
RowCount = Annotated[int, whole_number(1), WithJsonSchema({"type": "integer", "minimum": 1})]


def _or_text(value: object) -> object:
    """Headers are names and expressions, or one expression for them all."""
    return {"": value} if isinstance(value, str) else value


class TopicKeys(FileModel):
    """Rows as records of a topic."""

    SHORT: ClassVar[str | None] = "name"

    name: Text | None = key("The topic.", None)
    name_of: Text | None = key("An expression that gives the topic of each row.", None)
    bootstrap: Text | None = key("host:port of brokers; default: the file's.", None)
    key_: PartKeys | None = key("An expression for the key, or a schema of the registry.", None)
    value: PartKeys = key(
        "json for an object of the columns, an expression, or a schema of the registry.", "json"
    )
    headers: Annotated[
        Options,
        BeforeValidator(_or_text),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}]}),
    ] = key("Names and expressions, or one expression for all.", {})
    partition: Text | None = key("An expression for the partition.", None)
    options: Options = key("Any option of the sink.", {})

    @model_validator(mode="after")
    def _has_one_name(self) -> TopicKeys:
        one_of({"name": self.name, "name_of": self.name_of}, ("name", "name_of"))
        return self

    def target(self, defaults: Defaults) -> spec.TopicTarget:
        """ValidationError for a wrong option."""
        servers = self.bootstrap or defaults.bootstrap
        try:
            sink_options({"kafka.bootstrap.servers": servers, **self.options})
        except UserError as error:
            raise mistake_at("topic.options", str(error)) from None
        return spec.TopicTarget(
            servers,
            topic=self.name,
            topic_of=self.name_of,
            key=None if self.key_ is None else self._part(self.key_, "key", defaults),
            value=self._part(self.value, "value", defaults),
            headers=self.headers.get("", self.headers),
            partition=self.partition,
            options=self.options,
        )

    def _part(self, part: str | EncodingKeys, name: str, defaults: Defaults) -> str | spec.Encoding:
        if isinstance(part, str):
            return part
        if name == "key" and not part.of:
            raise mistake_at("topic.key.of", "missing: an expression for the key")
        subject = None if self.name is None else f"{self.name}-{name}"
        try:
            return part.encoding(FormatDefaults(defaults.folder, defaults.registry, subject))
        except ValidationError as error:
            detail = error.errors()[0]
            path = ".".join(("topic", name, *map(str, detail["loc"])))
            raise mistake_at(path, detail["msg"]) from None


class FilesKeys(FileModel):
    """Rows as files in a folder."""

    SHORT: ClassVar[str | None] = "path"

    path: Text = key("The folder.")
    partition_by: Texts = key("Columns that make folders.", ())
    options: Options = key("Any option of Spark's writer.", {})

    def target(self, kind: str) -> spec.FilesTarget:
        return spec.FilesTarget(self.path, self.partition_by, kind, self.options)


class TableKeys(FileModel):
    """What Delta and Iceberg tables have in common."""

    path: Text = key("The folder of the table.")
    schema_: Literal["strict", "evolve", "rescue"] = key(
        "What happens to columns that the table does not have.", "strict"
    )
    partition_by: Texts = key("Columns by which the table is partitioned.", ())
    upsert_by: Texts = key("A row takes the place of the one with the same key.", ())
    order_by: Text | None = key("The column that says which row of a key is the last.", None)
    delete_when: Text | None = key("A predicate: rows that delete their key.", None)

    @model_validator(mode="after")
    def _has_key(self) -> TableKeys:
        for name in ("delete_when", "order_by"):
            if getattr(self, name) is not None and not self.upsert_by:
                raise mistake_at(name, "requires upsert_by: the key whose row is meant")
        return self

    def table(self, kind: str, **more: YamlValue) -> spec.TableTarget:
        return spec.TableTarget(
            kind,
            self.path,
            keys=self.upsert_by,
            schema=self.schema_,
            partition_by=self.partition_by,
            delete_when=self.delete_when,
            order_by=self.order_by,
            **more,
        )


class DeltaKeys(TableKeys):
    """Rows in a Delta table."""

    SHORT: ClassVar[str | None] = "path"

    compact_every: Count = key("Write small files together after so many batches.", 0)
    vacuum_after: Duration | None = key("Remove files that only older versions need.", None)

    @model_validator(mode="after")
    def _compacts(self) -> DeltaKeys:
        if self.vacuum_after is None:
            return self
        if self.vacuum_after < HOUR_MS:
            raise mistake_at(
                "vacuum_after",
                f"{self.vacuum_after} ms: expected at least 1h; files of running batches stay",
            )
        if not self.compact_every:
            raise mistake_at(
                "vacuum_after", "requires compact_every: after how many batches it is done"
            )
        return self

    def target(self) -> spec.TableTarget:
        hours = None if self.vacuum_after is None else self.vacuum_after // HOUR_MS
        return self.table("delta", compact_every=self.compact_every, vacuum_hours=hours)


class IcebergKeys(TableKeys):
    """Rows in an Iceberg table."""

    table_: Text = key("The name of the table in its catalogue, as in lake.views.")
    catalog: Options = key("Properties of the catalogue; default: a SQLite file beside.", {})

    def target(self) -> spec.TableTarget:
        return self.table("iceberg", name=self.table_, catalog=self.catalog)


class ConsoleKeys(FileModel):
    """Rows printed."""

    rows: RowCount = key("How many rows of a batch.", 20)


class SinkKeys(FileModel):
    """A view, and where its rows go: exactly one of the targets."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [target]} for target in TARGETS]}
    )

    name: Text = key("The name of the sink.")
    from_: Text = key("The view whose rows are written.")
    mode: Literal["append", "update", "complete"] = key("Spark's output mode.", "append")
    topic: TopicKeys | None = key("A topic.", None)
    parquet: FilesKeys | None = key("A folder of Parquet files.", None)
    csv: FilesKeys | None = key("A folder of CSV files.", None)
    json_: FilesKeys | None = key("A folder of JSON files.", None)
    delta: DeltaKeys | None = key("A Delta table.", None)
    iceberg: IcebergKeys | None = key("An Iceberg table.", None)
    console: ConsoleKeys | None = key("Standard output.", None)

    def sink(self, defaults: Defaults) -> spec.Sink:
        """ValidationError for a wrong option, or a mode that the target does not take."""
        target = self._target(defaults)
        if self.mode != "append" and not _takes_changes(target):
            raise mistake_at("mode", f"{self.mode!r}: not supported by this sink; expected append")
        return spec.Sink(self.name, self.from_, target, self.mode)

    def _target(self, defaults: Defaults) -> spec.Target:
        if self.topic is not None:
            return self.topic.target(defaults)
        files = {"parquet": self.parquet, "csv": self.csv, "json": self.json_}
        for kind, keys in files.items():
            if keys is not None:
                return keys.target(kind)
        table = self.delta or self.iceberg
        if table is not None:
            return table.target()
        return spec.ConsoleTarget(self.console.rows if self.console else ConsoleKeys().rows)


def _has_one_target(value: object) -> object:
    """Checked before the rest; `console:` alone stands for its defaults."""
    if isinstance(value, Mapping) and "console" in value and value["console"] is None:
        value = {**value, "console": {}}
    one_of(value, TARGETS)
    return value


OneSink = Annotated[SinkKeys, BeforeValidator(_has_one_target)]


def _takes_changes(target: spec.Target) -> bool:
    """Whether rows may come again with another content."""
    return not isinstance(target, spec.FilesTarget) and (
        not isinstance(target, spec.TableTarget) or bool(target.keys)
    )
