from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ottla.cli.console import Table
from ottla.cli.watch_view import show_repeatedly
from tests.cli.ottla_program import Run
from tests.cli.terminal import on_a_terminal


def pauses(count: int) -> Callable[[float], object]:
    """Ends after so many looks."""
    left = iter(range(count - 1))
    return lambda seconds: next(left, None) is None


def test_each_look_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = iter(range(9))

    def look() -> list[Table]:
        return [Table("groups", ("lag",), [(next(numbers),)])]

    assert show_repeatedly(look, as_json=True, every_s=1, wait=pauses(3)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [[{"lag": 0}], [{"lag": 1}], [{"lag": 2}]]


def test_a_broker_that_is_away_for_a_while_does_not_end_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = iter([ConnectionError("nobody answered"), None])

    def look() -> list[Table]:
        failure = next(looks)
        if failure is not None:
            raise failure
        return [Table("groups", ("lag",), [])]

    assert show_repeatedly(look, as_json=False, every_s=1, wait=pauses(2)) == 0
    out, err = capsys.readouterr()
    assert "groups: none" in out
    assert err == "ottla: nobody answered\n"


def test_an_interrupt_is_a_good_end() -> None:
    def look() -> list[Table]:
        raise KeyboardInterrupt

    assert show_repeatedly(look, as_json=False, every_s=1, wait=pauses(1)) == 0


@pytest.mark.parametrize(
    "words", ["groups list", "groups describe", "topics list", "topics describe"]
)
def test_groups_and_topics_are_watched_until_ctrl_c(
    words: str, run: Run, group: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the broker, as `run` sets it."""
    name = group if words.startswith("groups") else topic
    only = [name] if words.endswith("describe") or words == "topics list" else []
    code, shown = on_a_terminal(
        [*words.split(), *only, "--watch"], name, "\x03", columns=200, lines=1_000
    )
    assert code == 0
    assert "Ctrl-C ends" in shown


def test_top_goes_on_until_ctrl_c(run: Run, group: str, topic: str) -> None:
    """The environment names the broker, as `run` sets it."""
    words = ["top", "--interval", "0.2"]
    code, shown = on_a_terminal(words, group, "\x03", columns=200, lines=1_000)
    assert code == 0
    assert "Traceback" not in shown
    assert group in shown
