"""Variables of a file stand for what the environment and files say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ottla.spark.pipelines import file_values
from ottla.spark.pipelines.variables import Masks, Resolved, resolve

ENVIRONMENT = {
    "BROKERS": "a:1",
    "EMPTY": "",
    "PASSWORD": "pass\\word",
    "HOST": "host",
    "SHORT": "7",
}


def read_text(name: str) -> str:
    if name != "secret":
        raise FileNotFoundError(2, "No such file or directory")
    return "s3cret\n"


def resolved(value: object) -> object:
    found = Resolved()
    made = resolve(value, ENVIRONMENT, read_text, found)
    assert not found.mistakes
    return made


def masks_of(value: object) -> Masks:
    found = Resolved()
    resolve(value, ENVIRONMENT, read_text, found)
    return found.masks(value)


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
    found = Resolved()
    written = {"a": {"b": [value]}, "c": "${env:BROKERS} and ${env:ALSO}"}
    assert resolve(written, ENVIRONMENT, read_text, found) == written, "left as they stand"
    first, second = found.mistakes.items()
    assert first[0] == "a.b[0]"
    assert re.search(message, first[1])
    assert second == ("c", "c: ${env:ALSO}: the environment variable ALSO is not set")


def test_a_message_shows_the_variable_and_not_its_value() -> None:
    masks = masks_of({"a": "${env:PASSWORD}", "b": "x-${env:HOST}y", "c": "${secret:file:secret}"})
    assert masks.mask("s3cret pass\\word at x-hosty") == "*** ${env:PASSWORD} at x-${env:HOST}y"
    assert masks.mask(repr("pass\\word")) == "'${env:PASSWORD}'", "as messages quote it"
    assert masks.mask("hosts") == "hosts", "a word that begins with the value"
    assert masks.mask("//host/x") == "//${env:HOST}/x"


def test_a_message_shows_values_that_the_file_has_and_short_ones() -> None:
    masks = masks_of({"host": "${env:HOST}", "n": "${env:SHORT}", "d": "${env:NO:-default}"})
    assert masks.mask("host 7 default") == "host 7 default"


def test_sparks_own_variables_are_left_to_spark() -> None:
    values = {"steps": [{"sql": "SELECT '${spark.app.name}'"}], "spark": {"x.y": "${spark.z}"}}
    assert resolved(values) == values


def test_a_file_is_read_beside_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "topic.txt").write_text("orders\n")
    (tmp_path / "p.yaml").write_text("name: p\nsources: {a: {topic: '${file:topic.txt}'}}\n")
    assert file_values.load(tmp_path / "p.yaml").values["sources"]["a"]["topic"] == "orders"
