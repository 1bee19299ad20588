"""What a run would read, by the file and its checkpoints."""

from __future__ import annotations

from pathlib import Path

import yaml

from ottla.model.ids import TopicPartition
from ottla.spark.offsets import BEGAN
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.spec import Pipeline
from ottla.spark.pipelines.trial.read_plan import (
    SourceRange,
    checkpoint_position,
    file_sizes,
    query_plans,
)
from ottla.spark.pipelines.trial.sample import sample_options

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
RANGE = SourceRange({A: 10, B: 0}, {A: 110, B: 50}, {A: 2.0})


def pipeline(checkpoint: Path) -> Pipeline:
    return yaml_file.parse(
        yaml.safe_load(f"""
        name: test
        checkpoint: {checkpoint}
        sources:
          views: {{topic: t, dead_letter: dead}}
          users: {{topic: u}}
        steps:
          - {{name: valid, from: views, reject: {{none: value IS NULL}}, dead_letter: dead}}
          - {{name: joined, sql: "SELECT * FROM valid v JOIN `Users` u USING (k)"}}
          - {{name: plain, sql: "SELECT 'users', v.users FROM valid v -- users"}}
        sinks:
          - {{name: out, from: valid, topic: out}}
          - {{name: shown, from: joined, console: {{}}}}
          - {{name: alone, from: plain, console: {{}}}}
        """)
    )


def test_every_query_is_listed_with_the_sources_that_its_view_is_made_of(tmp_path: Path) -> None:
    """The sink `out` writes the letters of its view: they are no query of their own."""
    ranges = {"views": RANGE, "users": SourceRange({}, {}, {})}
    plans = query_plans(pipeline(tmp_path), ranges)
    assert {plan.query: (plan.sinks, plan.sources) for plan in plans} == {
        "views_sinks": (("out", "views_dead_letter", "alone"), ("views",)),
        "shown": (("shown",), ("views", "users")),
    }


def checkpoint(folder: Path, done: int | None, *batches: str) -> None:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for number, line in enumerate(batches):
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{line}")
        (folder / "offsets" / f".{number}.crc").write_text("")
    for number in range(0 if done is None else done + 1):
        (folder / "commits" / str(number)).write_text("v1\n{}")


def test_a_query_goes_on_after_its_last_committed_batch(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metadata").write_text("{}")
    checkpoint(tmp_path / "out", 0, '{"t":{"0":100,"1":50}}', '{"t":{"0":105,"1":50}}')
    ranges = {"views": RANGE, "users": SourceRange({}, {}, {})}
    plans = {plan.query: plan for plan in query_plans(pipeline(tmp_path), ranges)}
    assert (plans["out"].batch, plans["out"].records, plans["out"].bytes) == (0, 10, 20)
    rest = plans["views_sinks"]
    assert (rest.sinks, rest.batch) == (("alone", "views_dead_letter"), None)
    assert (rest.records, rest.bytes) == (150, 200)


def test_a_first_batch_that_is_not_done_begins_where_it_began(tmp_path: Path) -> None:
    began = r'{"__ottla_began":"{\"t\": {\"0\": 90}}","t":{"0":100}}'
    checkpoint(tmp_path, None, began.replace("__ottla_began", BEGAN))
    assert checkpoint_position(str(tmp_path)) == (None, {A: 90})
    assert checkpoint_position(str(tmp_path / "none")) == (None, None)


def test_a_sample_is_the_last_records_spread_over_the_partitions() -> None:
    options = {"subscribe": "t", "startingOffsets": "earliest", "ottla.delay": "5s"}
    assert sample_options(options, RANGE, 101) == {
        "subscribe": "t",
        "startingOffsets": '{"t": {"0": 59, "1": 0}}',
        "endingOffsets": '{"t": {"0": 110, "1": 50}}',
    }


def test_files_are_counted_as_spark_reads_them(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("12345")
    assert file_sizes(str(tmp_path)) == (2, 10)
    assert file_sizes(f"{tmp_path}/a*") == (1, 5)
    assert file_sizes(str(tmp_path / "none")) == (0, 0)
    assert file_sizes("s3://bucket/in") is None
