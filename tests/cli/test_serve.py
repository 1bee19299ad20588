from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.main import run
from ottla.cli.serve import parse_options
from ottla.config.broker import BrokerConfig
from ottla.config.properties import load
from ottla.model.errors import UserError


def test_without_arguments_nothing_is_set() -> None:
    assert parse_options([]) == (None, [])


def test_settings_are_given_under_kafkas_names() -> None:
    file, sets = parse_options(["server.properties", "--set", "num.partitions=3", "--set", "a=b=c"])
    assert file == Path("server.properties")
    assert sets == ["num.partitions=3", "a=b=c"]


def test_short_options_stand_for_settings_and_win_over_set() -> None:
    options = "--set log.dirs=/a --data-dir /b,/c --listeners X://:0 --metrics-port 0"
    _, sets = parse_options(options.split())
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
        parse_options(arguments)
    assert said in str(mistake.value)


def test_the_sample_of_settings_loads_without_a_remark_and_shows_the_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--print-sample-config"]) == 0
    text = capsys.readouterr().out
    file = tmp_path / "server.properties"
    file.write_text(text)
    assert load(file).texts == {}, "every setting is a comment until it is changed"
    shown = re.findall(r"^#([a-z][a-z.]+)=(.*)$", text, re.MULTILINE)
    assert len(shown) > 15
    for name, value in shown:
        setting = BrokerConfig.SETTINGS[name]
        assert value == (setting.show(setting.default) or ""), name
    file.write_text(re.sub(r"^#([a-z][a-z.]+=.+)$", r"\1", text, flags=re.MULTILINE))
    loaded = load(file)
    assert loaded.warnings == []
    assert len(loaded.texts) > 10


def log_of_a_broker(folder: Path, *options: str) -> str:
    """What a broker wrote to stderr from its start to its end."""
    words = ["serve", "--listeners", "PLAINTEXT://127.0.0.1:0", "--data-dir", str(folder)]
    with subprocess.Popen(
        [sys.executable, "-m", "ottla", *words, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert "ready on" in process.stdout.readline()
            process.terminate()
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    return said


def test_the_log_has_a_level_and_a_format(tmp_path: Path) -> None:
    unknown = ("--set", "no.such.setting=1")
    said = log_of_a_broker(tmp_path, "--log-format", "json", *unknown)
    lines = [json.loads(line) for line in said.splitlines()]
    assert {"time", "level", "logger", "message"} <= set(lines[0])
    assert any("no.such.setting has no effect" in line["message"] for line in lines)
    assert "INFO" in {line["level"] for line in lines}
    said = log_of_a_broker(tmp_path, "--log-format", "json", "--log-level", "warning", *unknown)
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line["level"] for line in lines} == {"WARNING"}
    assert run(["serve", "--log-level", "loud"]) == 2
