from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla.cli.kafka.configs import entry_line, listed_pairs
from ottla.client.admin import ConfigEntry, ConfigSource
from ottla.client.admin.configs import Synonym
from ottla.model.errors import UserError
from tests.cli.conftest import make_topic
from tests.cli.ottla_program import Run

CONFIGS = "kafka-configs.sh"


@pytest.mark.spec("TOOL-18")
def test_settings_of_a_topic_are_changed_and_described(run_kafka: Run, topic: str) -> None:
    words = ("--entity-type", "topics", "--entity-name", topic)
    change = "max.message.bytes=1000,cleanup.policy=[compact,delete]"
    ran = run_kafka(CONFIGS, "--alter", *words, "--add-config", change)
    assert ran.out == f"Completed updating config for topic {topic}.\n"
    head, *lines = run_kafka(CONFIGS, "--describe", "--topic", topic).out.splitlines()
    assert head == f"Dynamic configs for topic {topic} are:"
    assert lines == [
        "  cleanup.policy=compact,delete sensitive=false synonyms={"
        "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  max.message.bytes=1000 sensitive=false synonyms={"
        "DYNAMIC_TOPIC_CONFIG:max.message.bytes=1000, DEFAULT_CONFIG:message.max.bytes=1048588}",
    ]
    undo = "max.message.bytes,cleanup.policy"
    assert run_kafka(CONFIGS, "--alter", "--topic", topic, "--delete-config", undo).code == 0
    assert run_kafka(CONFIGS, "--describe", "--topic", topic).out == head + "\n"
    assert "segment.ms=" in run_kafka(CONFIGS, "--describe", "--topic", topic, "--all").out


@pytest.mark.spec("TOOL-18")
def test_brokers_and_their_defaults_have_settings(run_kafka: Run, tmp_path: Path) -> None:
    file = tmp_path / "add.properties"
    file.write_text("message.max.bytes=1048589\n")
    add = run_kafka(CONFIGS, "--alter", "--broker-defaults", "--add-config-file", file)
    assert add.out == "Completed updating default config for brokers in the cluster.\n"
    shown = run_kafka(CONFIGS, "--describe", "--entity-type", "brokers").out
    assert "Default configs for brokers in the cluster are:\n  message.max.bytes=1048589" in shown
    undo = ("--entity-type", "brokers", "--entity-default", "--delete-config", "message.max.bytes")
    assert run_kafka(CONFIGS, "--alter", *undo).code == 0
    assert "1048589" not in run_kafka(CONFIGS, "--describe", "--broker-defaults").out


def test_every_topic_and_every_logger_may_be_described(run_kafka: Run, admin: ottla.Admin) -> None:
    topic = make_topic(admin)
    assert f"topic {topic} are:" in run_kafka(CONFIGS, "--describe", "--entity-type", "topics").out
    assert run_kafka(CONFIGS, "--describe", "--entity-type", "broker-loggers").code == 0


@pytest.mark.spec("TOOL-18")
def test_groups_have_settings_whether_they_are_there_or_not(run_kafka: Run) -> None:
    wanted = "consumer.session.timeout.ms=50000"
    ran = run_kafka(CONFIGS, "--alter", "--group", "nobody's", "--add-config", wanted)
    assert ran.out == "Completed updating config for group nobody's.\n"
    shown = run_kafka(CONFIGS, "--describe", "--entity-type", "groups").out
    assert f"Dynamic configs for group nobody's are:\n  {wanted} sensitive=false" in shown
    undo = ("--group", "nobody's", "--delete-config", "consumer.session.timeout.ms")
    assert run_kafka(CONFIGS, "--alter", *undo).code == 0
    gone = run_kafka(CONFIGS, "--describe", "--group", "nobody's").out
    assert gone == "The group 'nobody's' doesn't exist and doesn't have dynamic config.\n"
    everything = run_kafka(CONFIGS, "--describe", "--group", "nobody's", "--all").out
    assert "  consumer.session.timeout.ms=45000" in everything


def test_a_line_has_every_place_where_a_value_was_said() -> None:
    secret = ConfigEntry(
        "password",
        None,
        ConfigSource.STATIC_BROKER_CONFIG,
        True,
        True,
        (Synonym("password", None, ConfigSource.STATIC_BROKER_CONFIG),),
    )
    assert entry_line(secret) == (
        "  password=null sensitive=true synonyms={STATIC_BROKER_CONFIG:password=None}"
    )


def test_pairs_may_hold_lists() -> None:
    assert listed_pairs("a=1, b=[x,y] ,c=") == {"a": "1", "b": "x,y", "c": ""}
    with pytest.raises(UserError, match="--add-config 'a'"):
        listed_pairs("a")


def test_mistakes_are_said_with_exit_code_1(run_kafka: Run, topic: str) -> None:
    run_kafka(CONFIGS).failed(1, "exactly one action")
    run_kafka(CONFIGS, "--describe").failed(1, "At least one entity type")
    run_kafka(CONFIGS, "--describe", "--entity-type", "tables").failed(1, "Invalid entity type")
    run_kafka(CONFIGS, "--alter", "--topic", topic).failed(1, "At least one of --add-config")
    bad = run_kafka(CONFIGS, "--alter", "--topic", topic, "--add-config", "retention.ms=soon")
    bad.failed(1, "Error while executing config command with args", "retention.ms")
    all_of_them = ("--alter", "--entity-type", "topics", "--add-config", "a=b")
    run_kafka(CONFIGS, *all_of_them).failed(1, "An entity name must be specified")
    every_group = ("--alter", "--entity-type", "groups", "--entity-default", "--add-config", "a=b")
    run_kafka(CONFIGS, *every_group).failed(1, "An entity name must be specified", "groups")
    too_short = ("--alter", "--group", "g", "--add-config", "consumer.session.timeout.ms=1")
    run_kafka(CONFIGS, *too_short).failed(1, "consumer.session.timeout.ms=1: expected between")
