"""Tables of databases, through ADBC drivers: no jar, and rows arrive as Arrow.

Owns: which driver an address means, the columns of a query, and how its rows are read: by a worker,
a batch of columns at a time. Never: writes to a database, or shows an address with its password.

A failure of a database is a ConnectionError, whatever it was: the query that needs the rows is
started again after a while.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ottla.model.errors import UserError
from ottla.spark.pipelines.spec import DatabaseSource
from ottla.spark.pipelines.variables import YamlMapping

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager.dbapi import Connection, Cursor
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "ottla_database"
SETTINGS: Final = "secret_settings"
"""The one option of the data source; Spark masks options whose names say that they are secret."""
SQLITE: Final = "sqlite"
DRIVERS: Final = {"postgresql": "postgresql", "postgres": "postgresql", SQLITE: SQLITE}
"""The driver of a scheme, a module `adbc_driver_…`."""


def frame(spark: SparkSession, source: DatabaseSource) -> DataFrame:
    """The rows of a query, held by Spark until they are loaded again."""
    return rows(spark, source).persist()


def rows(spark: SparkSession, source: DatabaseSource) -> DataFrame:
    """The rows of a query; the database is asked for its columns where the file has no schema."""
    spark.dataSource.register(DatabaseDataSource)
    settings = {
        "uri": source.uri,
        "query": source.query,
        "driver": source.driver,
        "options": dict(source.options),
    }
    schema = source.schema or columns(source)
    reader = spark.read.format(FORMAT).schema(schema)
    return reader.option(SETTINGS, json.dumps(settings)).load()


def columns(source: DatabaseSource) -> StructType:
    """The columns of a query, without its rows; UserError if the database does not say them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    where = f"sources.{source.name}.database"
    try:
        with _cursor(source.uri, source.driver, source.options) as cursor:
            return from_arrow_schema(_plain_schema(_result_schema(cursor, source.query)))
    except ConnectionError as error:
        raise UserError(f"{where}: {error}") from None


def _result_schema(cursor: Cursor, query: str) -> pa.Schema:
    """Not every driver knows the columns without running the query; SQLite's types are those of
    its values."""
    from adbc_driver_manager import NotSupportedError

    try:
        return cursor.adbc_execute_schema(query)
    except NotSupportedError:
        cursor.execute(query)
        with cursor.fetch_record_batch() as reader:
            return reader.schema


class DatabaseDataSource(DataSource):
    """What Spark is given: a query of one partition."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: StructType) -> DatabaseReader:
        return DatabaseReader(json.loads(self.options[SETTINGS]), schema)


class DatabaseReader(DataSourceReader):
    def __init__(self, settings: YamlMapping, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(self._schema, timezone="UTC")
        given = self._settings
        with _cursor(given["uri"], given["driver"], given["options"]) as cursor:
            cursor.execute(given["query"])
            for batch in cursor.fetch_record_batch():
                yield conform(batch, wanted)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that are wanted, in their types; UserError for one that cannot be had."""
    import pyarrow as pa

    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            listing = ", ".join(batch.schema.names)
            raise UserError(f"the query has no column {field.name}; it has {listing}")
        column = batch.column(field.name)
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        try:
            columns.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UserError(f"column {field.name}: {error}") from None
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def password_of(uri: str) -> str | None:
    """The password in an address, as it is written there."""
    try:
        return urlparse(uri).password
    except ValueError:
        return None


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Types that only the database knows as what they are stored as, text for PostgreSQL's
    NUMERIC."""
    import pyarrow as pa

    return pa.schema(
        [
            field.with_type(field.type.storage_type)
            if isinstance(field.type, pa.BaseExtensionType)
            else field
            for field in schema
        ]
    )


@contextmanager
def _cursor(uri: str, driver: str, options: Mapping[str, str]) -> Iterator[Cursor]:
    """A cursor of a new connection. What a driver says is a ConnectionError without its address."""
    from adbc_driver_manager import Error

    try:
        with _connection(uri, driver, options) as connection, connection.cursor() as cursor:
            yield cursor
    except Error as error:
        text = " ".join(str(error).split()).replace(uri, "the database")
        password = password_of(uri)
        raise ConnectionError(text.replace(password, "***") if password else text) from None


def _connection(uri: str, driver: str, options: Mapping[str, str]) -> Connection:
    from importlib import import_module

    from adbc_driver_manager import dbapi

    name = driver or DRIVERS[urlparse(uri).scheme]
    if name == SQLITE:
        uri = unquote(uri.removeprefix("sqlite://"))
    with suppress(ImportError, AttributeError):  # others are installed as libraries
        name = import_module(f"adbc_driver_{name}")._driver_path()
    return dbapi.connect(driver=name, db_kwargs={"uri": uri, **options}, autocommit=True)
