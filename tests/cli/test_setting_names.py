from __future__ import annotations

import ottla
from ottla.cli.setting_names import suggesting
from ottla.config.topic import TopicConfig
from ottla.model.errors import ErrorCode, KafkaError
from tests.cli.ottla_program import Run

MISSPELT = "retentoin.ms=1"


def test_a_misspelt_setting_of_a_topic_is_answered_with_the_nearest(run: Run, topic: str) -> None:
    said = "Unknown topic config name: retentoin.ms; did you mean retention.ms?"
    run("topics", "create", "never", "-c", MISSPELT).failed(1, said)
    run("topics", "alter", topic, "-c", MISSPELT).failed(1, said)
    run("configs", "set", "topic", MISSPELT, "--name", topic).failed(1, said)


def test_other_refusals_stay_as_they_are(admin: ottla.Admin) -> None:
    other = KafkaError(ErrorCode.unknown_topic_or_partition, "gone")
    assert suggesting(other, ["retentoin.ms"], TopicConfig.SETTINGS) is other
    value = KafkaError(ErrorCode.invalid_config, "retention.ms: expected a number")
    assert suggesting(value, ["retention.ms", "zzz"], TopicConfig.SETTINGS) is value


def test_a_misspelt_setting_of_a_group_is_answered_with_the_nearest(run: Run) -> None:
    words = ("group", "consumer.sesion.timeout.ms=60000", "--name", "g")
    run("configs", "set", *words).failed(1, "did you mean consumer.session.timeout.ms?")


def test_unknown_settings_of_brokers_are_accepted_as_kafka_accepts_them(run: Run) -> None:
    """Plug-ins have settings of their own."""
    ran = run("configs", "set", "brokers", "message.max.byte=1", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
