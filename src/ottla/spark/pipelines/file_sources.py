"""Sources that are files: a stream of them as they come, or a table that is loaded again.

Owns: how files are read, and when a table is loaded, one of a database included. Never: decides
where rows go.

A stream reads each file once, in the order of their times; write a file elsewhere and rename it to
the folder. A table with `refresh` is held by Spark as it was when it was loaded: a file that is
replaced meanwhile changes nothing before the next load. A batch that several sinks take is made of
one load (`TableUse`): a row that one of them refuses must not be good for the next.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Condition
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.model.clock import Clock, MonoMs
from ottla.model.errors import UserError
from ottla.spark.pipelines.checkpoint_owner import local_folder
from ottla.spark.pipelines.spec import DatabaseSource, FileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

MISSING: Final = "tables of databases need a package: pip install 'ottla[database]'"
LOAD_WAIT_S: Final = 0.5
"""How long a load waits for batches to end before it is put off until the next poll."""
DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "csv": {"header": "true", "mode": "FAILFAST"},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
}
"""A row that is not of the schema stops the query; Spark's own default reads it as nulls."""


TableSource: TypeAlias = FileSource | DatabaseSource


def frame(spark: SparkSession, source: TableSource) -> DataFrame:
    """The rows of a source's files, or of a database."""
    if isinstance(source, DatabaseSource):
        try:
            from ottla.spark.pipelines import databases
        except ImportError:
            raise UserError(MISSING) from None

        return databases.frame(spark, source)
    options = {**DEFAULTS[source.kind], **source.options}
    schema = source.schema
    if source.is_table:
        table = spark.read.format(source.kind).options(**options)
        return (table.schema(schema) if schema else table).load(source.path).persist()
    stream = spark.readStream.format(source.kind).options(**options)
    if schema:
        return stream.schema(schema).load(source.path)
    return stream.schema(spark.read.parquet(source.path).schema).load(source.path)


class TableUse:
    """Keeps loads of tables out of batches, and batches out of loads; a load goes first."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._batches = 0
        self._loads = 0

    @property
    def is_load_pending(self) -> bool:
        """Whether a load waits or runs: a batch that begins now waits for it."""
        return self._loads > 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """No table is loaded before this batch has ended; several may run at a time."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_load_pending)
            self._batches += 1
        try:
            yield
        finally:
            with self._changed:
                self._batches -= 1
                self._changed.notify_all()

    @contextmanager
    def load(self, wait_s: float = LOAD_WAIT_S) -> Iterator[bool]:
        """Whether a table may be loaded now: batches that began before have ended in time."""
        with self._changed:
            self._loads += 1
            is_free = self._changed.wait_for(lambda: not self._batches, wait_s)
        try:
            yield is_free
        finally:
            with self._changed:
                self._loads -= 1
                self._changed.notify_all()


class TableRefresh:
    """Loads tables again when it is time and no batch uses them."""

    def __init__(
        self,
        spark: SparkSession,
        sources: Iterable[TableSource],
        frames: Mapping[str, DataFrame],
        clock: Clock,
        use: TableUse | None = None,
    ) -> None:
        self._use = use or TableUse()
        self._spark = spark
        self._sources = [source for source in sources if source.refresh_ms is not None]
        self._frames = frames
        self._clock = clock
        now_ms = clock.mono_ms()
        self._due_ms = {
            source.name: MonoMs(now_ms + source.refresh_ms)
            for source in self._sources
            if source.refresh_ms is not None
        }

    def __call__(self) -> None:
        for source in self._sources:
            now_ms = self._clock.mono_ms()
            if now_ms < self._due_ms[source.name] or source.refresh_ms is None:
                continue
            with self._use.load() as is_free:
                if is_free:
                    self._due_ms[source.name] = MonoMs(now_ms + source.refresh_ms)
                    self._load(source)

    def _load(self, source: TableSource) -> None:
        """Read it again; what cannot be read now stays as it is."""
        from pyspark.errors import PySparkException

        missing = _missing(source)
        if missing is not None:
            log.warning("sources.%s: %s; keeping its rows", source.name, missing)
            return
        table = self._frames[source.name]
        try:
            table.unpersist()
            self._spark.catalog.refreshTable(source.name)
            rows = table.persist().count()
            log.info("sources.%s: loaded %d rows of %s", source.name, rows, source.path)
        except PySparkException as error:
            reason = str(error).strip().splitlines()[0]
            text = "sources.%s: cannot load %s: %s; trying again at the next refresh"
            log.warning(text, source.name, source.path, reason)


def _missing(source: TableSource) -> str | None:
    """Why a table cannot be loaded now."""
    if isinstance(source, DatabaseSource):
        from ottla.spark.pipelines import databases

        try:
            databases.columns(source)
        except UserError as error:
            return str(error)
        return None
    path = local_folder(source.path)
    if path is not None and "*" not in source.path and not path.exists():
        return f"{source.path} is missing"
    return None
