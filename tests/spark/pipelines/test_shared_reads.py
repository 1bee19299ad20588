"""One read of a topic feeds all sinks without state, and each of them gets every batch once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlparse

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from ottla.spark.pipelines.dlq.letters import REASON_HEADER
from ottla.spark.pipelines.queries import outputs
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.views import Views
from ottla.testing import Broker
from tests.spark.pipelines.jobs import Sent, Stage, headers, values
from tests.spark.quick_jvm import QUICK_SPARK

DEADLINE_S = 300.0
FILE = """
name: shop
trigger: once
sources:
  events:
    topic: events
    format: json
    schema: n INT, user STRING
    dead_letter: dead
    options: {maxOffsetsPerTrigger: 20}
  prices: {json: PRICES, schema: "n INT, price INT", refresh: never}
steps:
  - name: valid
    from: events
    reject: {negative: n < 0}
    dead_letter: dead
  - {name: priced, sql: "SELECT n, user, price FROM valid JOIN prices USING (n)"}
  - {name: once, from: valid, deduplicate: [user]}
sinks:
  - {name: copied, from: valid, topic: {name: copied, key: user}}
  - {name: even, from: valid, topic: {name_of: "concat('n-', n % 2)", value: n}}
  - {name: files, from: valid, parquet: LAKE/files}
  - {name: table, from: priced, delta: LAKE/table}
  - {name: users, from: once, topic: users}
"""
TOPICS = ("events", "dead", "copied", "n-0", "n-1", "users")
SHARED = "events_sinks"


def pipeline(stage: Stage) -> Pipeline:
    return stage.pipeline(file(stage))


def file(stage: Stage) -> str:
    prices = stage.folder / "prices.json"
    prices.write_text("".join(json.dumps({"n": n, "price": 2 * n}) + "\n" for n in range(200)))
    text = FILE.replace("PRICES", str(prices)).replace("LAKE", str(stage.folder / "lake"))
    return text + f"bootstrap: {stage.servers}\ncheckpoint: {stage.folder / 'checkpoint'}\n"


def send(stage: Stage, numbers: range) -> None:
    sent = [json.dumps({"n": n, "user": f"u{n % 7}"}).encode() for n in numbers]
    stage.send("events", [*map(Sent, sent), Sent(b"no JSON"), Sent(b'{"n": -1}')])


def check(stage: Stage, numbers: range, letters: int) -> None:
    """Every sink has every row once."""
    expected = list(numbers)
    assert sorted(json.loads(one.value or b"")["n"] for one in stage.read("copied")) == expected
    for rest in (0, 1):
        found = sorted(int(value) for value in values(stage.read(f"n-{rest}")))
        assert found == [n for n in expected if n % 2 == rest]
    assert files(stage) == expected
    assert table(stage) == [(n, 2 * n) for n in expected]
    reasons = Counter(headers(one)[REASON_HEADER] for one in stage.read("dead"))
    assert reasons == {"negative": letters, "the value is not JSON of the schema": letters}


def files(stage: Stage) -> list[int]:
    """The rows of the files that Spark's list of them has."""
    folder = stage.folder / "lake" / "files"
    found: list[int] = []
    for batch in folder.glob("_spark_metadata/[0-9]*"):
        for line in batch.read_text().splitlines()[1:]:
            path = unquote(urlparse(json.loads(line)["path"]).path)
            found += parquet.read_table(path).column("n").to_pylist()
    return sorted(found)


def table(stage: Stage) -> list[tuple[int, int]]:
    from deltalake import DeltaTable

    rows = DeltaTable(str(stage.folder / "lake" / "table")).to_pyarrow_table().to_pylist()
    return sorted((row["n"], row["price"]) for row in rows)


def test_one_query_reads_a_topic_for_topics_files_a_table_and_dead_letters(stage: Stage) -> None:
    stage.topics(*TOPICS)
    send(stage, range(50))
    made = pipeline(stage)
    ran = stage.once(made)
    assert set(ran.totals) == {SHARED, "users"}, "the sink with state has a query of its own"
    assert ran.totals[SHARED].rows_in == 52
    check(stage, range(50), 1)
    assert len(stage.read("users")) == 7

    stage.forget_the_last_commit(made, SHARED)
    stage.once(made)
    check(stage, range(50), 1)

    send(stage, range(50, 60))
    stage.once(made)
    check(stage, range(60), 2)


def test_a_pipeline_that_began_with_a_query_for_each_sink_goes_on_with_them(stage: Stage) -> None:
    stage.topics("events", "a", "b", "c")
    both = """
name: shop
sources: {events: {topic: events, format: string}}
sinks:
  - {name: a, from: events, topic: {name: a, value: value}}
  - {name: b, from: events, topic: {name: b, value: value}}
"""
    stage.send("events", [Sent(b"1")])
    stage.once(stage.pipeline("shared_reads: false\n" + both))
    stage.send("events", [Sent(b"2")])
    ran = stage.once(stage.pipeline(both + "  - {name: c, from: events, topic: c}\n"))
    assert set(ran.totals) == {"a", "b", "c"}
    for topic in ("a", "b"):
        assert values(stage.read(topic)) == [b"1", b"2"]
    assert len(stage.read("c")) == 2


def test_state_is_found_in_the_plan_and_not_in_the_words(stage: Stage) -> None:
    """`max` has no word of its own, and a column may be called `group`. A table of a database, as
    one of files, is no stream."""
    made = stage.pipeline(f"""
name: shop
sources:
  events:
    topic: events
    format: json
    schema: "`group` STRING, at TIMESTAMP"
    watermark: {{column: at, delay: 1 second}}
  owners:
    database: sqlite://{stage.folder}/owners.db
    query: SELECT team, name FROM owners
    schema: team STRING, name STRING
steps:
  - {{name: plain, sql: "SELECT `group` FROM events"}}
  - {{name: windows, sql: "SELECT max(at) AS last FROM events GROUP BY window(at, '1 minute')"}}
  - {{name: twice, sql: "SELECT * FROM plain UNION ALL SELECT * FROM plain"}}
  - {{name: owned, sql: "SELECT name FROM plain LEFT JOIN owners ON `group` = team"}}
sinks:
  - {{name: a, from: plain, topic: a}}
  - {{name: b, from: plain, topic: b}}
  - {{name: c, from: windows, topic: c}}
  - {{name: d, from: twice, topic: d}}
  - {{name: e, from: owned, topic: e}}
""")
    found = [each.name for each in outputs(made, Views(stage.spark, made))]
    assert found == [SHARED, "c", "d"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Stage]:
    """A broker and a folder: the pipeline is a program of its own, with its own Spark."""
    with Broker() as broker:
        yield Stage(cast("SparkSession", None), broker.bootstrap_servers, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "write", [pytest.param("files", marks=pytest.mark.slow), pytest.param("table")]
)
def test_a_driver_killed_between_two_writes_of_a_batch_repeats_none_and_loses_none(
    place: Stage, write: str
) -> None:
    """Topics are written first, then files, then the table: those before the kill are done."""
    place.topics(*TOPICS)
    send(place, range(50))
    path = place.folder / "shop.yaml"
    stateless = file(place).replace("  - {name: users, from: once, topic: users}\n", "")
    path.write_text(stateless + f"spark: {json.dumps(QUICK_SPARK)}\n")
    run(path, place.folder, write, "1", killed=True)
    copied = len(place.read("copied"))
    assert 20 < copied < 50, "the topics of batch 1 are written, and those of batch 2 are not"
    assert len(table(place)) < copied, "and the table has not got them"
    assert (len(files(place)) < copied) == (write == "files")
    run(path, place.folder, killed=False)
    check(place, range(50), 1)


def run(path: Path, folder: Path, *fatal: str, killed: bool) -> None:
    program = Path(__file__).with_name("killed_writes.py")
    done = subprocess.run(
        [sys.executable, str(program), str(path), *fatal],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        start_new_session=True,
    )
    assert (done.returncode == -9) == killed, done.stdout[-2_000:] + done.stderr[-4_000:]
