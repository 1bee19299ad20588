"""Files as sources and sinks, and tables of files that are loaded again."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from ottla.model.errors import UserError
from ottla.spark import pipelines
from ottla.spark.pipelines import file_sources, yaml_file
from ottla.spark.pipelines.file_sources import TableRefresh, TableUse
from ottla.spark.pipelines.preflight import findings
from ottla.spark.pipelines.spec import FileSource, FilesTarget
from ottla.spark.pipelines.views import Views
from tests.cluster.process import wait_for
from tests.fakes.manual_time import ManualClock
from tests.spark.pipelines.arriving_files import put

DEADLINE_S = 30.0


def file(folder: Path) -> Path:
    path = folder / "p.yaml"
    path.write_text(f"""
        name: files
        checkpoint: {folder}/checkpoints
        trigger: once
        lineage: {{transport: {{type: file, log_file_path: "{folder}/events", append: true}}}}
        sources:
          orders: {{csv: "{folder}/orders", schema: "item STRING, n INT"}}
          items:
            json: {folder}/items.json
            schema: item STRING, price INT
            refresh: 10 minutes
        steps:
          - name: priced
            sql: SELECT item, n * price AS total FROM orders JOIN items USING (item)
        sinks:
          - {{name: lines, from: priced, json: "{folder}/out/json"}}
          - name: rows
            from: priced
            csv: {{path: "{folder}/out/csv", options: {{header: true}}}}
    """)
    return path


def totals(folder: Path) -> list[tuple[str, int]]:
    texts = (path.read_text() for path in (folder / "out/json").glob("*.json"))
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    return sorted((row["item"], row["total"]) for row in rows)


@pytest.mark.spec("APP-06")
def test_files_are_read_once_joined_with_a_table_of_files_and_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = file(tmp_path)
    (tmp_path / "items.json").write_text('{"item": "pen", "price": 2}\n{"item": "ink", "price": 5}')
    put(tmp_path / "orders", "a.csv", "item,n\npen,3\n")
    pipelines.run(path, spark=spark)
    assert totals(tmp_path) == [("pen", 6)]
    put(tmp_path / "orders", "b.csv", "item,n\nink,1\n")
    pipelines.run(path, spark=spark)
    assert totals(tmp_path) == [("ink", 5), ("pen", 6)]
    written = [part.read_text() for part in (tmp_path / "out/csv").glob("*.csv")]
    assert sorted(written) == ["item,total\nink,5\n", "item,total\npen,6\n"]
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [one["eventType"] for one in events] == ["START", "COMPLETE"] * 2
    assert {one["name"] for one in events[-1]["inputs"]} == {
        f"{tmp_path}/orders",
        f"{tmp_path}/items.json",
    }


def test_a_running_join_sees_a_table_as_it_was_loaded_until_it_is_loaded_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline, clock = yaml_file.open_pipeline(file(tmp_path)), ManualClock()
    (tmp_path / "items.json").write_text('{"item": "pen", "price": 2}')
    put(tmp_path / "orders", "a.csv", "item,n\npen,1\n")
    views = Views(spark, pipeline)
    refresh = TableRefresh(spark, pipeline.files, views.frames, clock)
    query = views.frames["priced"].writeStream.format("memory").queryName("priced_rows").start()

    def last_total(name: str, later_ms: int) -> int:
        """Of an order that comes after so much time."""
        clock.ns += later_ms * 1_000_000
        refresh()
        put(tmp_path / "orders", name, f"item,n\npen,{len(name)}\n")
        query.processAllAvailable()
        rows = spark.table("priced_rows").collect()
        return max(int(row.total) for row in rows)

    try:
        query.processAllAvailable()
        put(tmp_path, "items.json", '{"item": "pen", "price": 30}\n{"item": "ink", "price": 5}')
        assert last_total("bb.csv", 599_999) == 12
        assert last_total("ccc.csv", 1) == 210
        (tmp_path / "items.json").unlink()
        assert last_total("dddd.csv", 600_000) == 240, "a missing file loses no rows"
    finally:
        query.stop()
        views.frames["items"].unpersist()


def test_a_table_is_not_loaded_inside_a_batch_and_no_batch_begins_before_a_load() -> None:
    """Several sinks take a batch one after another: all of them refuse a row, or none does."""
    use, order = TableUse(), list[str]()
    in_batch, end_batch = Event(), Event()

    def first() -> None:
        with use.batch():
            in_batch.set()
            end_batch.wait(DEADLINE_S)
            order.append("first")

    def load() -> None:
        with use.load(DEADLINE_S) as is_free:
            order.append(f"load {is_free}")

    def second() -> None:
        with use.batch():
            order.append("second")

    threads = [Thread(target=first)]
    threads[0].start()
    assert in_batch.wait(DEADLINE_S)
    with use.load(0) as is_free:
        assert not is_free, "a batch runs"
    threads.append(Thread(target=load))
    threads[1].start()
    wait_for(lambda: use.is_load_pending)
    threads.append(Thread(target=second))
    threads[2].start()
    end_batch.set()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert order == ["first", "load True", "second"]


def test_a_load_that_found_batches_running_is_made_when_they_have_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    clock, use = ManualClock(), TableUse()
    path = tmp_path / "items.json"
    path.write_text('{"item": "pen"}')
    table = FileSource("items", "json", str(path), "item STRING", is_table=True, refresh_ms=1_000)
    frame = file_sources.frame(spark, table)
    frame.createOrReplaceTempView("items")
    refresh = TableRefresh(spark, [table], {"items": frame}, clock, use)
    try:
        assert frame.count() == 1
        put(tmp_path, "items.json", '{"item": "pen"}\n{"item": "ink"}')
        clock.ns += 1_000 * 1_000_000
        with use.batch():
            refresh()
            assert frame.count() == 1
        refresh()
        assert frame.count() == 2
    finally:
        frame.unpersist()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"csv": "x"}, r"sources\.s\.schema: missing: csv files have no types"),
        ({"json": "x", "schema": "n INT", "refresh": "often"}, r"sources\.s\.refresh='often': exp"),
        ({"parquet": "x", "dead_letter": "d"}, r"sources\.s\.dead_letter: unknown key"),
        ({"parquet": "x", "topic": "d"}, r"sources\.s: expected one of topic, .*; got topic and p"),
        (
            {"parquet": "x", "refresh": "never", "watermark": {"column": "a", "delay": "1 hour"}},
            r"sources\.s\.watermark: not allowed with refresh",
        ),
    ],
)
def test_mistakes_in_sources_of_files_are_said_with_their_place(
    source: dict[str, Any], said: str
) -> None:
    sinks = [{"name": "a", "from": "s", "console": {}}]
    with pytest.raises(UserError, match=said):
        yaml_file.parse({"name": "p", "sources": {"s": source}, "sinks": sinks})


def test_refresh_is_written_like_a_trigger_or_short() -> None:
    def refresh(text: str) -> FileSource:
        values = yaml.safe_load(f"""
            name: p
            sources: {{s: {{parquet: x, refresh: {text}}}}}
            sinks: [{{name: a, from: s, csv: out}}]
        """)
        pipeline = yaml_file.parse(values)
        assert pipeline.sinks[0].target == FilesTarget("out", kind="csv")
        (source,) = pipeline.files
        assert isinstance(source, FileSource)
        return source

    assert refresh("10 minutes").refresh_ms == 600_000
    assert refresh("30s").refresh_ms == 30_000
    assert (refresh("never").is_table, refresh("never").refresh_ms) == (True, None)


def test_files_that_are_not_there_are_found_before_a_run(tmp_path: Path) -> None:
    found = findings(yaml_file.open_pipeline(file(tmp_path)), offline=True)
    assert [text.split(": ")[0] for text in found] == ["sources.orders.csv", "sources.items.json"]
