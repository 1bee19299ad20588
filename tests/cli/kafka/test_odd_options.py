"""Options of Kafka's commands with values that are missing, odd or do not go together.

Whatever is on the command line, a command ends with 0 or 1 and never with a traceback; where
Kafka's tool refuses it before it asks a broker, ours does so in the same words.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

import ottla
from ottla.cli.kafka.main import TOOLS
from tests.cli.ottla_program import Run

CONFIGS, TOPICS, GROUPS, ACLS = (
    "kafka-configs",
    "kafka-topics",
    "kafka-consumer-groups",
    "kafka-acls",
)
CONSUMER, PRODUCER = "kafka-console-consumer", "kafka-console-producer"
ODD_FILES: Final = ("/bin/sh", "/dev/null", "/dev")
SLOW: Final = ((CONSUMER, "group"),)  # each name is a group to join
TARGET: Final = ("--bootstrap-server", "--zookeeper", "--broker-list")
ODD: Final = (
    "",
    "x",
    "-1",
    "99999999999999999999",
    "(",
    "/nowhere",
    "a=b",
    "t:x",
    ":",
    "/bin/sh",
    "/dev/null",
)
COMPLETE: Final = {
    ACLS: (
        "--list",
        "--add --allow-principal User:odd --topic t",
        "--remove --force --topic nothing",
    ),
    CONFIGS: (
        "--describe --topic t",
        "--alter --topic t --add-config retention.ms=1",
        "--describe",
    ),
    CONSUMER: ("--topic t --timeout-ms 1 --partition 0",),
    PRODUCER: ("--topic t",),
    GROUPS: (
        "--list",
        "--describe --group odd",
        "--reset-offsets --group odd --topic t --to-latest",
        "--delete-offsets --group odd --topic t",
    ),
    TOPICS: ("--list", "--describe", "--create --topic odd", "--alter --topic t --partitions 2"),
}
"""Commands that are right; each option of the tool is added to them with odd values."""


def options_of(tool: str) -> Iterator[argparse.Action]:
    parser: argparse.ArgumentParser = import_module(TOOLS[f"{tool}.sh"])._parser()
    for action in parser._actions:
        if action.option_strings and not {"--help", *TARGET} & set(action.option_strings):
            yield action


def odd_commands() -> Iterator[tuple[str, list[str]]]:
    for tool, commands in COMPLETE.items():
        for command in commands:
            for action in options_of(tool):
                texts: tuple[str, ...] = ODD[:1] if (tool, action.dest) in SLOW else ODD
                texts += ODD_FILES if action.type is Path else ()
                values = [[]] if action.nargs == 0 else [[], *([text] for text in texts)]
                for value in values:
                    yield tool, [*command.split(), action.option_strings[-1], *value]


@pytest.mark.spec("TOOL-05", "TOOL-18")
@pytest.mark.parametrize("tool", COMPLETE)
def test_no_value_of_an_option_ends_in_a_traceback(
    run_kafka: Run, admin: ottla.Admin, tool: str
) -> None:
    if "t" not in admin.list_topics():
        admin.create_topic("t", partitions=2)
    count = 0
    for name, words in odd_commands():
        if name == tool:
            ran = run_kafka(f"{tool}.sh", *words, stdin="line\n")
            assert ran.code in (0, 1), (words, ran)
            assert "Traceback" not in ran.err, (words, ran)
            assert ran.code == 0 or ran.err or ran.out, words
            count += 1
    assert count > 30


PAIRS: Final = "Only 'users' and 'clients' entity types may be specified together"
REFUSED: Final = [
    (CONFIGS, "--describe --entity-name x", "At least one entity type must be specified"),
    (CONFIGS, "--describe --entity-default", "At least one entity type must be specified"),
    (CONFIGS, "--alter --entity-name x --add-config a=b", "At least one entity type"),
    (CONFIGS, "--describe --entity-type tables", "Invalid entity type tables"),
    (CONFIGS, "--describe --entity-type topics --entity-type topics", "Duplicate entity type(s)"),
    (CONFIGS, "--describe --broker 0 --broker-defaults", "Duplicate entity type(s) specified"),
    (CONFIGS, "--describe --entity-type topics --entity-type brokers", PAIRS),
    (CONFIGS, "--describe --broker 0 --topic t", PAIRS),
    (CONFIGS, "--describe --topic t --entity-type topics", "should not be used in conjunction"),
    (
        CONFIGS,
        "--describe --entity-type brokers --entity-name x",
        "The entity name for brokers must be a valid integer broker id, but it is: x",
    ),
    (CONFIGS, "--alter --broker x --add-config a=b", "must be a valid integer broker id"),
    (CONFIGS, "--describe --broker 99999999999", "must be a valid integer broker id"),
    (CONFIGS, "--describe --broker-logger x", "must be a valid integer broker id"),
    (CONFIGS, "--describe --ip 300.1.1.1", "must be a valid IP or resolvable host"),
    (CONFIGS, "--describe --ip a/b", "must be a valid IP or resolvable host, but it is: a/b"),
    (CONFIGS, "--describe --entity-type topics --entity-default", "--entity-default must not be"),
    (
        CONFIGS,
        "--describe --entity-type users --entity-name a --entity-name b",
        "More entity names specified than entity types",
    ),
    (
        CONFIGS,
        "--describe --topic t --add-config a=b",
        'Option "[describe]" can\'t be used with option "[add-config]"',
    ),
    (CONFIGS, "--alter --entity-type users --add-config a=b", "An entity-name or default entity"),
    (CONFIGS, "--alter --entity-type topics --add-config a=b", "An entity name must be specified"),
    (
        CONFIGS,
        "--alter --topic t --add-config a=b --add-config-file /dev/null",
        "Only one of --add-config or --add-config-file must be specified",
    ),
    (CONFIGS, "--alter --topic t", "At least one of --add-config, --add-config-file, or"),
    (TOPICS, "--create --topic n --if-exists", '"[if-exists]" can\'t be used with option "[create'),
    (TOPICS, "--delete --topic t --if-not-exists", '"[if-not-exists]" can\'t be used with option'),
    (TOPICS, "--list --partitions 3", '"[partitions]" can\'t be used with option "[list]"'),
    (TOPICS, "--describe --config a=b", '"[config]" can\'t be used with option "[describe]"'),
    (TOPICS, "--alter --topic t --replication-factor 1", '"[replication-factor]" can\'t be used'),
    (
        TOPICS,
        "--create --topic n --replica-assignment 0 --partitions 1",
        '"[replica-assignment]" can\'t be used with option "[partitions]"',
    ),
    (
        TOPICS,
        "--describe --topics-with-overrides --unavailable-partitions",
        '"[topics-with-overrides]" can\'t be used with option "[unavailable-partitions]"',
    ),
    (GROUPS, "--list --group g", 'Option "[group]" can\'t be used with option "[list]"'),
    (GROUPS, "--list --topic t", 'Option "[topic]" can\'t be used with option "[list]"'),
    (GROUPS, "--list --state nonsense", "Invalid state list 'nonsense'. Valid states are: "),
    (GROUPS, "--list --type nonsense", "Invalid types list 'nonsense'. Valid types are: "),
    (GROUPS, "--describe --group g --all-groups", '"[group]" can\'t be used with option "[all-gro'),
    (GROUPS, "--describe --group g --topic t", '"[topic]" can\'t be used with option "[describe]"'),
    (GROUPS, "--describe --group g --members --offsets", "takes at most one of these options"),
    (GROUPS, "--describe --group g --state Stable", "does not take a value for [state]"),
    (GROUPS, "--delete --group g --topic t", "does not support topic-specific offset deletion"),
    (GROUPS, "--delete --group g --all-groups", '"[group]" can\'t be used with option "[all-gro'),
    (GROUPS, "--delete-offsets --group g", "takes the following options: [group], [topic]"),
    (
        GROUPS,
        "--reset-offsets --group g --topic t --to-earliest --execute --dry-run",
        "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
    ),
    (
        GROUPS,
        "--reset-offsets --group g --topic t --to-earliest --to-latest",
        '"[to-earliest]" can\'t be used with option "[to-latest]"',
    ),
]


@pytest.mark.parametrize(("tool", "words", "said"), REFUSED, ids=lambda value: str(value)[:60])
def test_options_that_do_not_go_together_are_refused_in_kafkas_words(
    run_kafka: Run, tool: str, words: str, said: str
) -> None:
    ran = run_kafka(f"{tool}.sh", *words.split())
    ran.failed(1, said)
    assert ran.out == "", "nothing was done"


def test_a_topic_without_partitions_or_replicas_is_not_created(
    run_kafka: Run, admin: ottla.Admin
) -> None:
    create = (f"{TOPICS}.sh", "--create", "--topic", "never-created")
    ran = run_kafka(*create, "--partitions", "0")
    assert (ran.code, "The partitions must be greater than 0" in ran.out) == (1, True)
    ran = run_kafka(*create, "--replication-factor", "0")
    assert (ran.code, "The replication factor must be between" in ran.out) == (1, True)
    assert "never-created" not in admin.list_topics()


def test_a_group_is_not_deleted_when_only_a_topic_of_it_is_meant(
    run_kafka: Run, admin: ottla.Admin, group: str, topic: str
) -> None:
    run_kafka(f"{GROUPS}.sh", "--delete", "--group", group, "--topic", topic).failed(1)
    assert admin.list_group_offsets(group).all()


def test_a_password_that_cannot_be_understood_is_not_repeated(run_kafka: Run) -> None:
    change = "SCRAM-SHA-256=[hunter2]"
    ran = run_kafka(f"{CONFIGS}.sh", "--alter", "--user", "u", "--add-config", change)
    ran.failed(1, "expected [iterations=number,password=text]")
    assert "hunter2" not in ran.err.splitlines()[-1]
