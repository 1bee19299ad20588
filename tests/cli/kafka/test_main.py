from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from ottla.cli.kafka.main import TOOLS, run
from tools.nodes import free_ports


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_exists_and_has_help(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(import_module(TOOLS[tool]).run)
    if tool == "kafka-run-class.sh":
        assert run(tool, ["kafka.tools.DumpLogSegments", "--help"]) == 0
    else:
        assert run(tool, ["--help"]) == 0
    assert tool in capsys.readouterr().out


def test_a_broker_out_of_reach_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    [port] = free_ports(1)
    at = f"127.0.0.1:{port}"
    assert run("kafka-topics.sh", ["--list", "--bootstrap-server", at]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"kafka-topics.sh: cannot reach a broker at {at}")
    assert err.count("\n") == 1


def test_the_module_is_what_the_scripts_run() -> None:
    words = [sys.executable, "-m", "ottla.cli.kafka.main", "kafka-topics.sh", "--list", "--create"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "exactly one action" in done.stderr
