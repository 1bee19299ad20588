from __future__ import annotations

import os
import subprocess
import sys

import pytest

import ottla
from ottla.cli import serve
from ottla.cli.completion import completed_words
from ottla.testing import Broker


def completed(line: str, **environment: str) -> list[str]:
    """The completions that bash gets for the last word of a line."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "ottla"],
        env={
            **os.environ,
            "_OTTLA_COMPLETE": "complete_bash",
            "OTTLA_COMPLETION_TIMEOUT_MS": "30000",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_topics_and_groups_are_completed(
    cli_broker: Broker, admin: ottla.Admin, topic: str, group: str
) -> None:
    server = cli_broker.bootstrap_servers
    assert completed(f"ottla consume -b {server} {topic}") == [topic]
    assert completed(f"ottla -b {server} topics describe {topic}") == [topic]
    assert completed(f"ottla groups describe -b {server} {group}") == [group]
    environment = {"OTTLA_BOOTSTRAP_SERVER": server}
    assert completed(f"ottla consume {topic} --group {group}", **environment) == [group]


def test_names_of_configs_are_of_the_kind_that_was_typed(
    cli_broker: Broker, admin: ottla.Admin, topic: str, group: str
) -> None:
    server = cli_broker.bootstrap_servers
    assert group in completed(f"ottla configs describe -b {server} group --name ")
    assert completed(f"ottla configs describe -b {server} group --name {group}") == [group]
    assert completed(f"ottla configs set -b {server} topic a=b -n {topic}") == [topic]
    brokers = [str(broker.id) for broker in admin.describe_cluster().brokers]
    assert completed(f"ottla configs describe -b {server} broker --name ") == brokers


def test_a_cluster_out_of_reach_is_no_error_while_one_types() -> None:
    quick = {"OTTLA_COMPLETION_TIMEOUT_MS": "200"}
    assert completed("ottla consume -b 127.0.0.1:1 ord", **quick) == []


def test_the_options_of_serve_are_completed() -> None:
    options = {
        option
        for action in serve._parser()._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    assert set(completed("ottla serve --")) == options
    assert completed("ottla serve --log-format ") == ["text", "json"]
    assert "log.retention.hours=" in completed("ottla serve --set log.ret")


def test_settings_are_completed() -> None:
    assert "retention.ms=" in completed("ottla topics create x --config reten")
    assert "linger.ms=" in completed("ottla produce x --set ling")


@pytest.mark.parametrize("name", ["COMP_WORDS", "_TYPER_COMPLETE_ARGS"])
def test_only_the_command_that_is_typed_is_loaded(name: str) -> None:
    assert completed_words({name: "ottla topics describe or"}) == ["topics", "describe", "or"]
    assert completed_words({}) == []
