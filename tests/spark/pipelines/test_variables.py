"""Variables of a file stand for what the environment and files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.spark.pipelines import file_values
from ottla.spark.pipelines.variables import resolve

ENVIRONMENT = {"BROKERS": "a:1", "EMPTY": ""}


def read_text(name: str) -> str:
    if name != "secret":
        raise FileNotFoundError(2, "No such file or directory")
    return "s3cret\n"


def resolved(value: object) -> object:
    return resolve(value, ENVIRONMENT, read_text)


def test_variables_are_resolved_wherever_they_stand() -> None:
    values = {"a": ["x-${env:BROKERS}-${file:secret}", 7], "b": {"c": "${env:NONE:-d}"}}
    assert resolved(values) == {"a": ["x-a:1-s3cret", 7], "b": {"c": "d"}}
    assert resolved("${env:EMPTY:-x}") == "", "set, though to nothing"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:NONE}", r"a\.b\[0\]: \$\{env:NONE\}: the environment variable NONE is not set"),
        ("${file:none}", r"a\.b\[0\]: .*No such file"),
        ("${TOPIC}", r"unknown variable; expected \$\{env:NAME\}"),
    ],
)
def test_one_that_cannot_be_resolved_is_named_with_its_place(value: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolved({"a": {"b": [value]}})


def test_sparks_own_variables_are_left_to_spark() -> None:
    values = {"steps": [{"sql": "SELECT '${spark.app.name}'"}], "spark": {"x.y": "${spark.z}"}}
    assert resolved(values) == values


def test_a_file_is_read_beside_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "topic.txt").write_text("orders\n")
    (tmp_path / "p.yaml").write_text("name: p\nsources: {a: {topic: '${file:topic.txt}'}}\n")
    assert file_values.load(tmp_path / "p.yaml").values["sources"]["a"]["topic"] == "orders"
