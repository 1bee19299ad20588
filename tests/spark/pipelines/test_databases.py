"""Tables of databases: read through ADBC, joined with streams, and loaded again."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from adbc_driver_sqlite import dbapi as sqlite
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark.pipelines import databases, yaml_file
from ottla.spark.pipelines.file_sources import TableRefresh
from ottla.spark.pipelines.preflight import findings
from ottla.spark.pipelines.spec import DatabaseSource
from ottla.spark.pipelines.views import Views
from tests.fakes.manual_time import ManualClock
from tests.postgres import PASSWORD, QUOTED, Postgres
from tests.spark.pipelines.arriving_files import put
from tests.spark.pipelines.jobs import Sent, Stage

ITEMS = (
    "CREATE TABLE items (item TEXT PRIMARY KEY, price NUMERIC(10, 2), since TIMESTAMPTZ)",
    "INSERT INTO items VALUES ('pen', 2.50, '2026-01-01Z'), ('ink', 5, NULL)",
)
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as running:
        running.execute(*ITEMS)
        yield running


@pytest.mark.timeout(240)
@pytest.mark.spec("APP-06")
def test_a_stream_is_joined_with_a_table_of_postgresql(stage: Stage, postgres: Postgres) -> None:
    stage.topics("orders", "priced", partitions=1)
    stage.send("orders", [Sent(b'{"item": "pen", "n": 3}'), Sent(b'{"item": "tea", "n": 1}')])
    stage.once(
        stage.pipeline(f"""
        name: pricing
        sources:
          orders: {{topic: orders, format: json, schema: "item STRING, n INT"}}
          items:
            database: "{postgres.uri}"
            query: SELECT item, price FROM items
            schema: item STRING, price DECIMAL(10, 2)
            refresh: 10 minutes
        steps:
          - name: priced
            sql: SELECT item, n * price AS total FROM orders LEFT JOIN items USING (item)
        sinks: [{{name: out, from: priced, topic: priced}}]
        """)
    )
    rows = [json.loads(record.value or b"") for record in stage.read("priced")]
    # A join keeps no order.
    assert sorted(rows, key=len) == [{"item": "tea"}, {"item": "pen", "total": 7.5}]


def source(postgres: Postgres) -> DatabaseSource:
    return DatabaseSource("items", postgres.uri, "SELECT * FROM items", refresh_ms=10 * MINUTE_MS)


def test_a_running_join_sees_the_rows_of_the_last_load_also_while_the_database_is_away(
    spark: SparkSession, postgres: Postgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    pipeline = yaml_file.parse(
        yaml.safe_load(f"""
        name: p
        sources:
          orders: {{csv: "{tmp_path}/orders", schema: "item STRING, n INT"}}
          items: {{database: "{postgres.uri}", table: items, refresh: 10 minutes}}
        steps: [{{name: priced, sql: "SELECT n, price FROM orders JOIN items USING (item)"}}]
        sinks: [{{name: a, from: priced, console: }}]
        """)
    )
    (tmp_path / "orders").mkdir()
    views = Views(spark, pipeline)
    refresh = TableRefresh(spark, pipeline.files, views.frames, clock)
    query = views.frames["priced"].writeStream.format("memory").queryName("priced_db").start()

    def price(number: int, later_ms: int) -> str:
        """Of an order that comes after so much time."""
        clock.ns += later_ms * 1_000_000
        refresh()
        put(tmp_path / "orders", f"{number}.csv", f"item,n\npen,{number}\n")
        query.processAllAvailable()
        rows = spark.table("priced_db").where(f"n = {number}").collect()
        return str(rows[0].price)

    try:
        assert price(1, 0) == "2.50"
        postgres.execute("UPDATE items SET price = 3 WHERE item = 'pen'")
        assert price(2, 10 * MINUTE_MS - 1) == "2.50", "it is not time yet"
        assert price(3, 1) == "3.00"
        postgres.stop()
        with caplog.at_level(logging.WARNING):
            assert price(4, 10 * MINUTE_MS) == "3.00"
        assert "keeping its rows" in caplog.text
        postgres.start()
        postgres.execute("UPDATE items SET price = 2.5 WHERE item = 'pen'")
        assert price(5, 10 * MINUTE_MS) == "2.50"
    finally:
        query.stop()
        views.frames["items"].unpersist()


def test_types_are_the_database_s(spark: SparkSession, postgres: Postgres) -> None:
    frame = databases.rows(spark, source(postgres))
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert kinds == {"item": "string", "price": "string", "since": "timestamp"}


def test_no_password_is_shown(postgres: Postgres, tmp_path: Path) -> None:
    items = source(postgres)
    for text in (repr(items), items.path):
        assert QUOTED not in text
        assert PASSWORD not in text
    wrong = DatabaseSource("items", postgres.uri, "SELECT * FROM nothing")
    with pytest.raises(UserError, match=r"sources\.items\.database: .*nothing") as caught:
        databases.columns(wrong)
    assert QUOTED not in str(caught.value)
    path = tmp_path / "p.yaml"
    path.write_text(
        f"name: p\nsources: {{items: {{database: '{postgres.uri}', table: items}}}}\n"
        "sinks: [{name: a, from: items, console: {}}]\n"
    )
    assert QUOTED in yaml_file.open_pipeline(path).secrets


def test_a_file_of_sqlite_is_a_database(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "shop items.db"
    with sqlite.connect(str(path), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE items (item TEXT, price INTEGER)")
        cursor.execute("INSERT INTO items VALUES ('pen', 2)")
    pipeline = yaml_file.parse(
        {
            "name": "p",
            "sources": {"items": {"database": f"sqlite://{path}", "table": "items"}},
            "sinks": [{"name": "a", "from": "items", "console": {}}],
        }
    )
    assert findings(pipeline, offline=True) == []
    rows = Views(spark, pipeline).frames["items"].collect()
    assert [tuple(row) for row in rows] == [("pen", 2)]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"table": "t"},
            r"sources\.d\.database: expected an address that begins with postgresql://",
        ),
        ({"driver": "x"}, r"sources\.d: expected one of table, query; got none"),
        ({"driver": "x", "table": "t", "query": "q"}, "got table and query"),
        ({"driver": "x", "table": "t", "refresh": "soon"}, r"sources\.d\.refresh"),
    ],
)
def test_mistakes_of_a_file_are_said(keys: dict[str, str], said: str) -> None:
    sinks = [{"name": "a", "from": "d", "console": {}}]
    values = {"name": "p", "sources": {"d": {"database": "oracle://x", **keys}}, "sinks": sinks}
    with pytest.raises(UserError, match=said):
        yaml_file.parse(values)


def test_a_column_that_a_schema_wants_and_a_query_lacks_is_named() -> None:
    batch = pa.RecordBatch.from_pydict({"item": ["pen"], "price": ["2.50"]})
    wanted = pa.schema([("price", pa.decimal128(10, 2))])
    assert str(databases.conform(batch, wanted).to_pylist()[0]["price"]) == "2.50"
    with pytest.raises(UserError, match="no column colour; it has item, price"):
        databases.conform(batch, pa.schema([("colour", pa.string())]))
    with pytest.raises(UserError, match="column item: "):
        databases.conform(batch, pa.schema([("item", pa.int64())]))
