"""Every command's `--help` shows examples, and every example works against a live broker."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from importlib import import_module
from inspect import getdoc
from itertools import pairwise
from pathlib import Path

import pytest

import ottla
from ottla.cli import main
from ottla.cli.commands import COMMANDS, EXAMPLES, Command
from ottla.cli.profile.profiles import SERVERS, Profiles, file_path, save
from ottla.cli.serve import EXAMPLES as SERVE_EXAMPLES
from ottla.cli.serve import parse_options
from ottla.client.admin import NewTopic
from ottla.model.errors import ErrorCode, KafkaError
from ottla.testing import Broker
from tests.cli.kafka_data import write_kafka_data
from tests.cli.ottla_program import Run

ELSEWHERE = "pipeline"  # Spark takes its time to start: tests of its own run those
OF_CLUSTERS = {
    ("brokers", "decommission"),
    ("brokers", "drain"),
    ("cluster", "start"),
    ("cluster", "status"),
    ("cluster", "stop"),
    ("gateway",),
    ("metadata", "export"),
    ("metadata", "import"),
    ("metadata", "move"),
    ("reassign", "cancel"),
    ("tokens", "create"),
    ("tokens", "expire"),
    ("tokens", "list"),
    ("tokens", "renew"),
    ("users", "add"),
    ("users", "remove"),
    ("zookeeper", "start"),
}
"""They start or need several processes, a terminal, or a login: tests/cluster, tests/cli/zookeeper,
tests/cli/test_gateway.py, tests/interop/test_secure_clients.py and test_delegation_tokens.py run
them."""
OF_THREE_BROKERS = "ottla reassign plan --all --replication-factor 3"
"""The one example of its command that wants a cluster: tests/cluster/test_growing.py runs it."""
TOPICS = ("orders", "clicks", "old-orders", "old-clicks", "older-clicks", "speed")


def examples(command: Command) -> list[str]:
    module, _, name = command.target.partition(":")
    _, mark, shown = (getdoc(getattr(import_module(module), name)) or "").partition(EXAMPLES)
    return [line.strip() for line in shown.splitlines() if "ottla " in line] if mark else []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.words))
def test_every_command_shows_an_example_of_itself_in_its_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = examples(command)
    assert shown, f"{command.words} has no example"
    assert main.run([*command.words, "--help"]) == 0
    help_text = capsys.readouterr().out
    for example in shown:
        assert example in help_text, "an example stands on a line of its own"
        _, _, words = example.rpartition("ottla ")
        assert words.startswith(" ".join(command.words))


@pytest.fixture
def stage(
    admin: ottla.Admin, cli_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Command], None]:
    """Everything that examples name: topics with records, groups, a transaction, files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def prepare(command: Command) -> None:
        made = admin.create_topics([NewTopic(name, 2) for name in TOPICS])
        for error in made.failed.values():
            assert isinstance(error, KafkaError) and error.code is ErrorCode.topic_already_exists
        if command.words == ("topics", "create"):
            admin.delete_topics(["orders", "clicks"]).all()
            return
        with ottla.Producer(bootstrap_servers=cli_broker.bootstrap_servers) as producer:
            for number in range(5):
                headers = [("source", b"shop")]
                producer.send("orders", f"t{number}".encode(), headers=headers, partition=0)
            producer.flush()
        for group in ("billing", "old-billing"):
            offsets = {ottla.TopicPartition("orders", at): 0 for at in range(2)}
            admin.alter_group_offsets(group, offsets).all()
        admin.fence_producers(["payments"]).all()
        Path("data").symlink_to(cli_broker.data_dir)
        files = {
            "offsets.json": [{"topic": "orders", "partition": 0, "offset": 1}],
            "plan.json": [{"topic": "orders", "partition": 0, "replicas": [0]}],
        }
        for name, rows in files.items():
            Path(name).write_text(json.dumps({"version": 1, "partitions": rows}))
        if command.words[0] == "profile":
            staging = Profiles({}, None).with_profile("staging", {SERVERS: "kafka1:9092"})
            save(file_path(os.environ), staging)
        if command.words == ("adopt",):
            written = write_kafka_data(tmp_path)
            written.rename(tmp_path / "kafka-logs")
            Path("settings.json").write_text(json.dumps({"orders": {"retention.ms": "-1"}}))

    return prepare


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (command, example)
        for command in COMMANDS
        if command.words[0] != "pipeline"  # these start Spark: tests/spark/pipelines
        and command.words not in OF_CLUSTERS
        for example in examples(command)
        if example != OF_THREE_BROKERS
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value.words),
)
def test_every_example_works(
    command: Command, example: str, stage: Callable[[Command], None], run: Run
) -> None:
    stage(command)
    before, _, words = example.rpartition("ottla ")
    feeds = before.rstrip().removesuffix("|")
    stdin = subprocess.run(["sh", "-c", feeds], capture_output=True, check=True).stdout
    line, _, file = words.partition(" > ")
    ran = run(*shlex.split(line), stdin=stdin)
    assert ran.code == 0, (example, ran.out, ran.err)
    if file:
        Path(file).write_text(ran.out)
        assert json.loads(ran.out)


def test_the_examples_of_serve_are_understood() -> None:
    shown = re.findall(r"^  ottla serve(.*)$", SERVE_EXAMPLES, re.MULTILINE)
    assert len(shown) >= 3
    for words in shown:
        file, sets = parse_options(shlex.split(words.partition(" > ")[0]))
        assert file is None or file.name == "server.properties"
        assert all("=" in one for one in sets)


def test_the_table_of_commands_is_in_order_and_each_has_its_own_file() -> None:
    words = [command.words for command in COMMANDS]
    assert all(one < other for one, other in pairwise(words))
    assert len({command.target for command in COMMANDS}) == len(COMMANDS)
