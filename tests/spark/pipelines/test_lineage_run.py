"""OpenLineage events of a pipeline that really runs, as a catalogue receives them by HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from ottla.spark import pipelines
from ottla.testing import Broker
from tests.postgres import PASSWORD, QUOTED, Postgres
from tests.spark.default_settings import DEFAULT_SETTINGS
from tests.spark.pipelines.jobs import Sent, Stage

PIPELINE = """
name: pricing
trigger: once
lineage: {{namespace: shop, transport: {{type: http, url: "{catalogue}"}}}}
sources:
  orders: {{topic: orders, format: json, schema: "item STRING, n INT", dead_letter: dead}}
  items: {{database: "{database}", table: items, refresh: never}}
steps:
  - {{name: priced, sql: "SELECT item, n * price AS total FROM orders JOIN items USING (item)"}}
sinks:
  - {{name: out, from: priced, topic: priced}}
  - {{name: lake, from: orders, parquet: "{folder}/lake"}}
"""
Event = dict[str, Any]


@contextmanager
def catalogue() -> Iterator[tuple[str, list[Event]]]:
    """A server that keeps the events it is sent."""
    received: list[Event] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(json.loads(body))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.timeout(240)
@pytest.mark.spec("APP-06")
def test_a_run_tells_what_it_reads_and_writes_when_it_starts_and_when_it_is_complete(
    spark: SparkSession, tmp_path: Path
) -> None:
    with Broker(DEFAULT_SETTINGS) as broker, Postgres() as postgres, catalogue() as (url, events):
        postgres.execute(
            "CREATE TABLE items (item TEXT PRIMARY KEY, price DOUBLE PRECISION)",
            "INSERT INTO items VALUES ('pen', 2.5)",
        )
        stage = Stage(spark, broker.bootstrap_servers, tmp_path)
        stage.topics("orders", "dead", "priced", partitions=1)
        stage.send("orders", [Sent(b'{"item": "pen", "n": 3}'), Sent(b"garbled")])
        text = PIPELINE.format(catalogue=url, database=postgres.uri, folder=tmp_path)
        path = tmp_path / "pricing.yaml"
        more = {"bootstrap": stage.servers, "checkpoint": str(tmp_path / "checkpoints")}
        path.write_text(yaml.safe_dump({**yaml.safe_load(text), **more}))
        pipelines.run(path, spark=spark)
        (priced,) = stage.read("priced")
    assert json.loads(priced.value or b"")["total"] == 7.5
    start, complete = (event for event in events if event["eventType"] != "RUNNING")
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    kafka = f"kafka://{stage.servers}"
    for event in (start, complete):
        assert (event["job"]["namespace"], event["job"]["name"]) == ("shop", "pricing")
        assert named(event["inputs"]) == [
            (kafka, "orders"),
            (f"postgres://{postgres.uri.split('@')[1].split('/')[0]}", "postgres.public.items"),
        ]
        assert sorted(named(event["outputs"])) == [
            ("file", f"{tmp_path}/lake"), (kafka, "dead"), (kafka, "priced"),
        ]  # fmt: skip
    columns = complete["inputs"][1]["facets"]["schema"]["fields"]
    assert [(one["name"], one["type"]) for one in columns] == [
        ("item", "string"),
        ("price", "double"),
    ]
    sent = json.dumps(events)
    assert PASSWORD not in sent
    assert QUOTED not in sent


def named(datasets: list[Event]) -> list[tuple[str, str]]:
    return [(dataset["namespace"], dataset["name"]) for dataset in datasets]
