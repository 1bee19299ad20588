from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.serve import asked
from ottla.model.errors import UserError


def test_without_arguments_nothing_is_set() -> None:
    assert asked([]) == (None, {})


def test_settings_are_given_under_kafkas_names() -> None:
    file, given = asked(["server.properties", "--set", "num.partitions=3", "--set", "a.b= c=d "])
    assert file == Path("server.properties")
    assert given == {"num.partitions": "3", "a.b": "c=d"}


def test_short_options_stand_for_settings_and_win_over_set() -> None:
    _, given = asked(
        ["--set", "log.dirs=/a", "--data-dir", "/b,/c", "--listeners", "X://:0"]
        + ["--metrics-port", "0"]
    )
    assert given == {"log.dirs": "/b,/c", "listeners": "X://:0", "metrics.port": "0"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "novalue"], "--set 'novalue': expected KEY=VALUE"),
        (["--set", "=1"], "--set '=1': expected KEY=VALUE"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["a.properties", "b.properties"], "unrecognized arguments: b.properties"),
        (["--data-dir"], "expected one argument"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], said: str) -> None:
    with pytest.raises(UserError, match=".") as mistake:
        asked(arguments)
    assert said in str(mistake.value)
