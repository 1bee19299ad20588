"""Which sinks share a query, and that what has begun keeps its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from ottla.model.errors import UserError
from ottla.spark.pipelines import yaml_file
from ottla.spark.pipelines.sinks.query_layout import (
    QueryLayout,
    Record,
    check_writes,
    layouts,
    record_of,
    seems_stateless,
    steps_for,
)
from ottla.spark.pipelines.spec import Pipeline

HERE = Path(__file__).parent
FILE = """
name: test
bootstrap: here:1
sources:
  views: {topic: t, dead_letter: dead}
  users: {topic: u}
  items: {json: ./items, schema: n INT, refresh: never}
steps:
  - {name: valid, from: views, reject: {none: value IS NULL}, dead_letter: dead}
  - {name: priced, sql: "SELECT * FROM valid JOIN items ON true"}
  - {name: once, from: valid, deduplicate: [value]}
  - {name: sums, sql: "SELECT value, count(*) FROM once GROUP BY value"}
  - {name: both, sql: "SELECT * FROM views, users"}
  - {name: visits, from: valid, python: "test_query_layout.py:made"}
sinks:
"""
PLAIN = """
  - {name: a, from: valid, topic: a}
  - {name: b, from: priced, topic: b}
  - {name: c, from: views, parquet: ./lake}
"""


def pipeline(sinks: str = PLAIN, **keys: bool) -> Pipeline:
    return yaml_file.parse({**yaml.safe_load(FILE + sinks), **keys}, HERE)


def made(
    pipeline: Pipeline, record: Record | None = None, begun: Sequence[str] = ()
) -> list[QueryLayout]:
    return layouts(pipeline, seems_stateless(pipeline), record or {}, lambda name: name in begun)


def test_sinks_without_state_and_dead_letters_of_one_source_share_a_query() -> None:
    found = made(pipeline())
    names = ("a", "valid_dead_letter", "b", "views_dead_letter")
    assert record_of(found) == {"views_sinks": {"a": names, "c": ("c",)}}
    (shared,) = found
    assert [member.letters for member in shared.members] == [True, False, True, False]


@pytest.mark.parametrize(
    "sink",
    [
        "{name: x, from: once, topic: t}",
        "{name: x, from: sums, topic: t}",
        "{name: x, from: both, topic: t}",
        "{name: x, from: visits, topic: t}",
        "{name: x, from: valid, topic: t, mode: update}",
        "{name: x, from: users, topic: t}",
    ],
)
def test_a_query_of_its_own_has_what_cannot_share_one(sink: str) -> None:
    found = made(pipeline(PLAIN + f"  - {sink}"))
    assert [layout.name for layout in found] == ["views_sinks", "x"]
    assert not found[1].is_shared


def test_sinks_of_other_brokers_or_options_are_writes_of_their_own() -> None:
    options = "{name: t, options: {kafka.compression.type: zstd}}"
    found = made(
        pipeline(
            PLAIN
            + f"""
  - {{name: d, from: valid, topic: {{name: t, bootstrap: "there:1"}}}}
  - {{name: e, from: valid, topic: {options}}}
  - {{name: f, from: valid, topic: {options}}}
"""
        )
    )
    assert record_of(found)["views_sinks"] == {
        "a": ("a", "valid_dead_letter", "b", "views_dead_letter"),
        "c": ("c",),
        "d": ("d",),
        "e": ("e", "f"),
    }


def test_sinks_with_checkpoints_of_their_own_go_on_with_them() -> None:
    begun = ["a", "b", "c", "views_dead_letter"]
    found = made(pipeline(), begun=begun)
    assert [layout.name for layout in found] == begun
    assert not record_of(found)


def test_a_sink_that_is_new_to_a_running_pipeline_has_a_query_of_its_own() -> None:
    """It has to read from the beginning; the shared query is beyond that."""
    record = record_of(made(pipeline()))
    found = made(pipeline(PLAIN + "  - {name: d, from: valid, topic: d}"), record)
    assert [layout.name for layout in found] == ["views_sinks", "d"]
    assert record_of(found) == record


def test_a_write_keeps_its_name_and_its_members_when_others_leave() -> None:
    record = record_of(made(pipeline()))
    fewer = pipeline(PLAIN.replace("  - {name: a, from: valid, topic: a}\n", ""))
    found = made(fewer, record)
    names = {"b", "views_dead_letter", "valid_dead_letter"}
    assert set(record_of(found)["views_sinks"]["a"]) == names
    again = made(pipeline(), record_of(found))
    assert [layout.name for layout in again] == ["a", "views_sinks"], (
        "it missed what came meanwhile"
    )
    assert set(record_of(again)["views_sinks"]["a"]) == names
    assert not again[0].members[0].letters, "the shared query has written them all along"


def test_letters_that_a_sink_no_longer_takes_go_on_in_their_query() -> None:
    """A query of their own would read from the beginning, and write all of them again."""
    record = record_of(made(pipeline()))
    options = "{name: a, options: {kafka.compression.type: zstd}}"
    found = made(pipeline(PLAIN.replace("topic: a}", f"topic: {options}}}")), record)
    assert [layout.name for layout in found] == ["views_sinks"]
    writes = record_of(found)["views_sinks"]
    assert writes["valid_dead_letter"] == ("valid_dead_letter",)
    assert writes["a"] == ("a",)


def test_options_that_change_while_a_batch_is_unfinished_are_refused() -> None:
    """The batch runs again, and the write that may have done it is another one now."""
    record = record_of(made(pipeline()))
    options = "{name: b, options: {kafka.compression.type: zstd}}"
    changed = made(pipeline(PLAIN.replace("topic: b}", f"topic: {options}}}")), record)
    check_writes(changed, record, lambda query: None)
    with pytest.raises(UserError, match=r"^b: .* batch 7 of the query views_sinks has not ended"):
        check_writes(changed, record, {"views_sinks": 7}.get)
    check_writes(made(pipeline(), record), record, {"views_sinks": 7}.get)
    check_writes(made(pipeline()), {}, {"views_sinks": 0}.get)


def test_a_member_whose_view_now_keeps_state_is_refused() -> None:
    record = record_of(made(pipeline()))
    with pytest.raises(UserError, match=r"^b: it is part of the query views_sinks"):
        made(pipeline(PLAIN.replace("from: priced", "from: once")), record)


def test_shared_reads_false_gives_every_sink_its_query_unless_they_share_one_already() -> None:
    apart = pipeline(shared_reads=False)
    assert [layout.name for layout in made(apart)] == ["a", "b", "c", "views_dead_letter"]
    record = record_of(made(pipeline()))
    assert [layout.name for layout in made(apart, record)] == ["views_sinks"]


def test_one_sink_alone_has_the_query_it_always_had() -> None:
    (alone,) = made(pipeline("  - {name: a, from: users, topic: t}\n"))[:1]
    assert (alone.name, alone.is_shared) == ("a", False)


def test_only_the_steps_that_a_query_needs_are_made_for_it() -> None:
    assert [step.name for step in steps_for(pipeline(), ["priced"])] == ["valid", "priced"]
