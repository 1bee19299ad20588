from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.serve import asked
from ottla.model.errors import UserError


def test_without_arguments_nothing_is_set() -> None:
    assert asked([]) == (None, [])


def test_settings_are_given_under_kafkas_names() -> None:
    file, sets = asked(["server.properties", "--set", "num.partitions=3", "--set", "a=b=c"])
    assert file == Path("server.properties")
    assert sets == ["num.partitions=3", "a=b=c"]


def test_short_options_stand_for_settings_and_win_over_set() -> None:
    options = "--set log.dirs=/a --data-dir /b,/c --listeners X://:0 --metrics-port 0"
    _, sets = asked(options.split())
    assert sets == ["log.dirs=/a", "listeners=X://:0", "log.dirs=/b,/c", "metrics.port=0"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["a.properties", "b.properties"], "unrecognized arguments: b.properties"),
        (["--data-dir"], "expected one argument"),
        (["--list", "x"], "unrecognized arguments: --list"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], said: str) -> None:
    with pytest.raises(UserError) as mistake:
        asked(arguments)
    assert said in str(mistake.value)
