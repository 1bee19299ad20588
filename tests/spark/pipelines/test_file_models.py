"""The keys of a file are models: every mistake is told at once, and editors get a JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ottla.model.errors import UserError
from ottla.spark.pipelines import templates, yaml_file
from ottla.spark.pipelines.file_models.base import (
    FileModel,
    Options,
    Text,
    Texts,
    key,
    model_of,
    whole_number,
)
from ottla.spark.pipelines.file_models.top import read_pipeline

ROOT = Path(__file__).parents[3]
FILES = [*(ROOT / "examples").glob("*/*.yaml"), ROOT / "tools" / "demo" / "shop.yaml"]


def test_every_mistake_of_a_file_is_told_at_once() -> None:
    with pytest.raises(UserError) as mistakes:
        yaml_file.parse(
            {
                "name": "9",
                "sources": {
                    "views": {"topic": "t", "formatt": "json"},
                    "files": {"csv": "x", "refresh": "often"},
                },
                "steps": [{"name": "s", "sql": "SELECT 1", "from": "views"}, "SELECT 2"],
                "sinks": [{"name": "a", "topic": {"name": "t", "keyy": "k"}}],
                "trigger": "often",
            }
        )
    assert [line.split(" (known")[0] for line in str(mistakes.value).splitlines()] == [
        "name: '9': expected letters, digits, - and _, a letter first",
        "trigger: 'often': expected once, or a time such as 5 seconds",
        "sources.views.formatt: unknown key; did you mean format?",
        "sources.files.refresh='often': expected a time such as 15m, 30s or 500ms",
        "steps[0].from: unknown key",
        "steps[1]: expected a mapping, got 'SELECT 2'",
        "sinks[0].from: missing",
        "sinks[0].topic.keyy: unknown key; did you mean key?",
    ]


def test_mistakes_in_options_schemas_and_files_are_told_together(tmp_path: Path) -> None:
    sources = {
        "a": {"topic": "t", "format": "json"},
        "b": {"topic": "t", "options": {"maxOffsetsPerTrigger": "few"}},
    }
    steps = [{"name": "s", "python": "no.py:f", "from": "a"}]
    sinks = [{"name": "x", "from": "a", "parquet": "p", "mode": "update"}]
    with pytest.raises(UserError) as mistakes:
        yaml_file.parse({"name": "p", "sources": sources, "steps": steps, "sinks": sinks}, tmp_path)
    assert [line.split(": ")[0] for line in str(mistakes.value).splitlines()] == [
        "sources.a.schema",
        "sources.b.options",
        "steps[0].python",
        "sinks[0].mode",
    ]


def test_mistakes_in_keys_options_and_names_are_told_together() -> None:
    reading = read_pipeline(
        {
            "name": "p",
            "trigger": "often",
            "sources": {
                "a": {"topic": "t", "format": "xml"},
                "b": {"topic": "t", "options": {"maxOffsetsPerTrigger": "few"}},
                "c": {"topic": "${env:NOT_SET}", "from": []},
                "d": {"topic": "t"},
            },
            "steps": [
                {"name": "one", "from": "a", "deduplicate": "value"},
                {"name": "two", "from": "nowhere", "deduplicate": "value"},
                {"name": "d", "sql": "SELECT * FROM b"},
            ],
            "sinks": [
                {"name": "x", "from": "c", "console": {"rows": 0}},
                {"name": "y", "from": "b", "console": {}},
                {"name": "z", "from": "one", "parquet": "p", "mode": "update"},
            ],
        },
        Path(),
        {"sources.c.topic": "sources.c.topic: ${env:NOT_SET}: not set"},
    )
    assert [line.split(" (known")[0].split(", got")[0] for line in reading.mistakes] == [
        "sources.c.topic: ${env:NOT_SET}: not set",
        "trigger: 'often': expected once, or a time such as 5 seconds",
        "sources.a.format: 'xml': expected one of json, avro, protobuf, string, binary",
        "sources.c.from: expected text",
        "sinks[0].console.rows: expected a whole number, at least 1",
        "sources.b.options: maxOffsetsPerTrigger='few': expected a whole number, at least 1",
        "sinks[2].mode: 'update': not supported by this sink; expected append",
        "step two: from: there is no view 'nowhere'; expected one of a, b, c, d, one",
        "d: used for more than one view or sink; names must be unique",
    ]
    assert sorted(reading.wrong_keys) == ["trigger"]
    assert sorted(reading.left_out) == ["a", "b", "c"]
    assert [sink.name for sink in reading.pipeline.sinks] == ["y"]


def test_a_mistake_brings_no_others_about_what_is_not_known_then() -> None:
    values = {
        "name": "p",
        "registry": {"address": "http://localhost:8081"},
        "sources": {"a": {"topic": "t", "format": "avro", "schema": "registry"}},
        "sinks": [{"name": "x", "from": "a", "console": {}}],
    }
    reading = read_pipeline(values, Path())
    assert [line.split(":")[0] for line in reading.mistakes] == ["registry.url", "registry.address"]
    reading = read_pipeline({**values, "registry": None, "sources": ["a"]}, Path())
    assert reading.mistakes == ("sources: expected a mapping, got a list",)
    assert reading.wrong_keys == frozenset(("sources",))


class Example(FileModel):
    text: Text = "none"
    texts: Texts = ()
    table: Options = key("Options.", {})
    inner: Example | None = None


def test_values_are_taken_as_they_are_written() -> None:
    made = model_of(Example, {"text": 3, "texts": "a", "table": {"on": True, "n": 2}})
    assert (made.text, made.texts, made.table) == ("3", ("a",), {"on": "true", "n": "2"})
    assert model_of(Example, {"text": None, "inner": {}}).text == "none"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1], "the file: expected a mapping, got a list"),
        ({1: "x"}, "the file: the key 1 is not text; quote it"),
        ({"text": {}}, "text: expected text, got a mapping"),
        ({"text": True}, "text: expected text, got True"),
        ({"texts": [1]}, "texts: expected text or a list of texts, got a list"),
        ({"table": {"a": None}}, "table.a: missing"),
        ({"table": {"a": []}}, "table.a: expected text, got a list"),
        ({"table": "x"}, "table: expected a mapping, got 'x'"),
        ({"inner": {"inner": {"tekst": 1}}}, "inner.inner.tekst: unknown key; did you mean text?"),
    ],
)
def test_a_mistake_is_told_with_its_path(value: Any, said: str) -> None:
    with pytest.raises(UserError) as mistake:
        model_of(Example, value)
    assert str(mistake.value).startswith(said)


def test_whole_numbers_have_a_least_value() -> None:
    validator = whole_number(1)
    for wrong in (True, "many", 0, 1.5):
        with pytest.raises(ValueError, match="expected a whole number, at least 1"):
            validator.func(wrong)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", templates.names())
def test_templates_are_valid_by_the_schema_for_editors(name: str) -> None:
    validate(yaml.safe_load(templates.text(name)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_examples_are_valid_by_the_schema_for_editors(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    validate(values, of_tests=path.name.endswith(".test.yaml"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"trigerr": "once"},
        {"sources": {"views": {"topic": "t", "formatt": "json"}}},
        {"steps": [{"name": "s", "sql": "x", "reject": {}}]},
        {"sinks": [{"name": "a", "from": "v", "topic": "t", "delta": "d"}]},
        {"sinks": [{"name": "a", "from": "v", "console": {"rows": 0}}]},
        {"restart": "sometimes"},
    ],
)
def test_editors_are_told_of_mistakes_by_the_schema(wrong: dict[str, Any]) -> None:
    validator = Draft202012Validator(yaml_file.json_schema())
    assert not validator.is_valid(wrong)


@pytest.mark.parametrize(
    "short",
    [
        {"restart": "never"},
        {"include": "common.yaml", "profiles": {"dev": {"trigger": "once"}}, "profile": "dev"},
        {"sinks": [{"name": "a", "from": "v", "topic": "t"}]},
        {"sinks": [{"name": "b", "from": "v", "csv": "c"}]},
        {"sources": {"s": {"topic": ["a", "b"], "options": {"maxOffsetsPerTrigger": 5}}}},
        {"sinks": [{"name": "a", "from": "v", "console": None}]},
    ],
)
def test_short_forms_and_keys_of_files_are_valid_by_the_schema(short: dict[str, Any]) -> None:
    validate(short)


def validate(values: Any, *, of_tests: bool = False) -> None:
    schema = yaml_file.json_schema(of_tests=of_tests)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(values)
