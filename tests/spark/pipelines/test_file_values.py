"""Includes, profiles and secrets of a pipeline file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.cli.pipeline.options import masked_output
from ottla.model.errors import UserError
from ottla.spark.pipelines.file_values import load
from ottla.spark.pipelines.variables import mask
from ottla.spark.pipelines.yaml_file import open_pipeline

COMMON = """
bootstrap: common:9092
spark: {a: "1", b: "1"}
sinks: [{name: shown, from: views, console: {}}]
"""
MAIN = """
include: common.yaml
name: p
spark: {b: "2"}
sources: {views: {topic: views}}
sinks: [{name: clean, from: views, topic: clean}]
profiles:
  dev: {bootstrap: "dev:9092", sources: {views: {topic: views-dev}}}
  prod: {trigger: 5 seconds, sinks: {clean: {mode: update}}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "common.yaml").write_text(COMMON)
    (tmp_path / "p.yaml").write_text(MAIN)
    return tmp_path / "p.yaml"


def test_a_file_is_put_over_those_that_it_includes(path: Path) -> None:
    values = load(path).values
    assert values["bootstrap"] == "common:9092"
    assert values["spark"] == {"a": "1", "b": "2"}
    assert [sink["name"] for sink in values["sinks"]] == ["shown", "clean"]
    assert open_pipeline(path).bootstrap == "common:9092"


def test_a_profile_is_put_over_the_file_and_set_over_the_profile(path: Path) -> None:
    dev = open_pipeline(path, profile="dev")
    assert (dev.bootstrap, dev.sources[0].options["subscribe"]) == ("dev:9092", "views-dev")
    prod = open_pipeline(path, ["trigger=once"], "prod")
    assert (prod.trigger, prod.sinks[1].mode, prod.sinks[0].mode) == ("once", "update", "append")
    path.write_text(MAIN + "profile: dev\n")
    assert open_pipeline(path).bootstrap == "dev:9092"
    assert open_pipeline(path, profile="prod").bootstrap == "common:9092"


@pytest.mark.parametrize(
    ("text", "profile", "said"),
    [
        (MAIN, "test", r"p\.yaml: profile: there is no profile test; the file has: dev, prod"),
        ("name: p", "dev", "there is no profile dev; the file has: none"),
        ("profiles: [dev]", "dev", "profiles: expected a mapping"),
        ("include: {a: 1}", None, "include: expected a file or a list of files"),
        ("include: none.yaml", None, r"none\.yaml: No such file"),
        ("include: p.yaml", None, r"include: p\.yaml includes this file"),
        (MAIN.replace("{clean: {mode", "{clear: {mode"), "prod", "no item clear; expected 0 to 1"),
    ],
)
def test_mistakes_in_includes_and_profiles_are_said(
    path: Path, text: str, profile: str | None, said: str
) -> None:
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        load(path, profile=profile)


def test_a_secret_is_in_no_error_no_output_and_no_repr(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path.parent / "password.txt").write_text("hunter2\n")
    secret = "${secret:file:password.txt}"
    with pytest.raises(UserError, match=r"trigger: '\*\*\*': expected once"):
        open_pipeline(path, [f"trigger={secret}"])
    pipeline = open_pipeline(path, [f"spark.password={secret}"])
    assert pipeline.spark["password"] == "hunter2"
    assert pipeline.secrets == ("hunter2",)
    with (
        pytest.raises(UserError, match=r"^login with \*\*\* failed$"),
        masked_output(pipeline.secrets),
    ):
        print("the password is hunter2")
        raise UserError("login with hunter2 failed")
    assert capsys.readouterr().out == "the password is ***\n"


def test_an_error_shows_a_variable_instead_of_its_value(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIGGER", "hunter2")
    with pytest.raises(UserError) as mistake:
        open_pipeline(path, ["trigger=${env:TRIGGER}", "shared_reads=${env:NOT_SET}"])
    assert "trigger: '${env:TRIGGER}': expected once" in str(mistake.value)
    assert "shared_reads: ${env:NOT_SET}: the environment variable NOT_SET is not" in str(
        mistake.value
    )
    assert "hunter2" not in str(mistake.value)


def test_each_line_of_a_secret_is_masked_the_longest_first() -> None:
    secrets: list[Any] = ["abc", "abcdef", "one\ntwo", ""]
    assert mask("abcdef abc two", secrets) == "*** *** ***"
