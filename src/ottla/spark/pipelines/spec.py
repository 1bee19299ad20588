"""What a pipeline is made of: plain values, as a file says them.

Owns no behaviour. `yaml_file` parses them, `views` and `queries` carry them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeAlias
from urllib.parse import urlparse

from ottla.spark.pipelines.restarts import RestartPolicy
from ottla.spark.pipelines.variables import YamlValue


@dataclass(frozen=True)
class Registry:
    """A schema registry: its address, and the settings of its client (logins, certificates)."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Format:
    """How keys or values are written in a topic.

    `schema` is Spark's DDL for json, the schema as JSON for avro and json-schema, and a file of
    descriptors for protobuf, whose `message` names the type. With a `registry` each value begins
    with the number of the schema that it was written with. `schema` is the one that it is read
    with; empty, it is that of a `subject`: a `version` of it, or the latest at the start.
    """

    kind: str = "binary"
    schema: str = ""
    message: str = ""
    tombstones: bool = False
    """Whether a record without a value is a row whose columns are null, and not refused."""
    registry: Registry | None = None
    subject: str = ""
    version: int | None = None
    references: tuple[tuple[str, str], ...] = ()
    """Schemas that `schema` refers to, by name, each after those that it refers to itself."""


@dataclass(frozen=True)
class Watermark:
    """How late events may come, by the column that says when they happened."""

    column: str
    delay: str


@dataclass(frozen=True)
class Source:
    """One view, read from topics. What does not decode goes to `dead_letter`, if there is one."""

    name: str
    options: Mapping[str, str] = field(repr=False)
    format: Format = field(default_factory=Format)
    watermark: Watermark | None = None
    dead_letter: str | None = None
    key: Format | None = None
    """How keys are written, where they are decoded: the column `key`."""


@dataclass(frozen=True)
class FileSource:
    """One view, read from files: CSV, JSON (an object on each line) or Parquet.

    A stream of the files as they come, each read once; or, with `is_table`, all of them as a table
    that is loaded again every `refresh_ms`, or never.
    """

    name: str
    kind: str
    path: str
    schema: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    watermark: Watermark | None = None
    is_table: bool = False
    refresh_ms: int | None = None


@dataclass(frozen=True)
class DatabaseSource:
    """One view, a table for joins: the rows of a query, loaded again every `refresh_ms` or never.

    `driver` names an ADBC driver where the address does not say which. `schema`, as Spark's DDL, is
    what the rows are cast to; without it the database is asked.
    """

    name: str
    uri: str = field(repr=False)
    query: str
    driver: str = ""
    schema: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    refresh_ms: int | None = None

    kind: ClassVar[str] = "database"
    is_table: ClassVar[bool] = True
    watermark: ClassVar[Watermark | None] = None

    @property
    def path(self) -> str:
        """Where it is, for people: without login and parameters."""
        parts = urlparse(self.uri)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


@dataclass(frozen=True)
class SqlStep:
    name: str
    sql: str
    watermark: Watermark | None = None


@dataclass(frozen=True)
class RejectStep:
    """Lets through what no predicate holds for; the rest goes to the dead letter, with a reason."""

    name: str
    source: str
    reasons: Mapping[str, str]
    dead_letter: str | None = None


@dataclass(frozen=True)
class DeduplicateStep:
    """The first row of each key. With `within`, repeats are known for so long and no longer."""

    name: str
    source: str
    keys: tuple[str, ...]
    within: Watermark | None = None


@dataclass(frozen=True)
class PythonStep:
    """A function of a Python file: the DataFrames of the views in `sources`, and a DataFrame back.

    `arguments` are handed to it by keyword.
    """

    name: str
    sources: tuple[str, ...]
    path: Path
    function: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """As the file says it, for errors."""
        return f"{self.path.name}:{self.function}"


Step: TypeAlias = SqlStep | RejectStep | DeduplicateStep | PythonStep


@dataclass(frozen=True)
class Encoding:
    """A key or value of a sink, written with a schema of the registry.

    `of` is an expression for what is encoded; empty: all columns. `schema` is `columns` (made of
    the types of `of`, and registered), `latest` (of the subject), or a schema that is registered.
    """

    kind: str
    registry: Registry
    subject: str
    of: str = ""
    schema: str = "columns"


@dataclass(frozen=True)
class TopicTarget:
    """Rows as records, each part an expression over the row.

    `topic` is a topic's name; `topic_of` says it for each row instead. `value` may be `json`, for
    an object of all columns. `headers` are names and expressions, or one expression for them all.
    """

    bootstrap: str
    topic: str | None = None
    topic_of: str | None = None
    key: str | Encoding | None = None
    value: str | Encoding = "json"
    headers: Mapping[str, str] | str = field(default_factory=dict)
    partition: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class FilesTarget:
    """Rows as files: Parquet, CSV or JSON."""

    path: str
    partition_by: tuple[str, ...] = ()
    kind: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class TableTarget:
    """Rows in a lake table. Iceberg tables have a name in a catalogue, Delta tables a path.

    With `keys` a row takes the place of the one with the same, instead of being added; rows for
    which `delete_when` holds delete it. Of rows with the same key in a batch the last one counts,
    by the column `order_by`, or else by the record's timestamp and offset.
    """

    kind: str
    path: str
    name: str = ""
    keys: tuple[str, ...] = ()
    catalog: Mapping[str, str] = field(default_factory=dict)
    schema: str = "strict"
    """What happens to columns that the table does not have: see `lake.schema_policy`."""
    partition_by: tuple[str, ...] = ()
    delete_when: str | None = None
    order_by: str | None = None
    compact_every: int = 0
    """Small files are written together after so many batches; 0: never. Delta only."""
    vacuum_hours: int | None = None
    """With it, files are removed that only older versions of the table need. Delta only."""


@dataclass(frozen=True)
class ConsoleTarget:
    rows: int = 20


Target: TypeAlias = TopicTarget | FilesTarget | TableTarget | ConsoleTarget


@dataclass(frozen=True)
class Sink:
    """One streaming query: a view, and where its rows go."""

    name: str
    source: str
    target: Target
    mode: str = "append"


@dataclass(frozen=True)
class GroupSync:
    """Consumer groups that shall go on, on another cluster, where they are on this one."""

    origin: str
    target: str
    groups: str
    every_ms: int


@dataclass(frozen=True)
class Lineage:
    """How OpenLineage events are sent; without a transport, as its client is configured."""

    namespace: str | None = None
    transport: Mapping[str, YamlValue] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Pipeline:
    """A whole file."""

    name: str
    bootstrap: str
    checkpoint: str
    trigger: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    group_sync: GroupSync | None = None
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    files: tuple[FileSource | DatabaseSource, ...] = ()
    """Sources that are files or tables of databases; `sources` are topics."""
    lineage: Lineage | None = None
    shared_reads: bool = True
    """Whether sinks without state share one query that reads their source."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of the file that are masked in everything that is printed."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What other values of the environment and of files are shown as in messages."""
