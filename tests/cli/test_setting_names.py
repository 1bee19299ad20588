from __future__ import annotations

import pytest

import ottla
from ottla.cli.setting_names import suggesting
from ottla.config.topic import TopicConfig
from ottla.model.errors import ErrorCode, KafkaError
from tests.cli.ottla_program import Run

MISSPELT = "retentoin.ms=1"


def test_a_misspelt_setting_of_a_topic_is_answered_with_the_nearest(run: Run, topic: str) -> None:
    said = "retentoin.ms: unknown topic setting; did you mean retention.ms?"
    run("topics", "create", "never", "-c", MISSPELT).failed(1, said)
    run("topics", "alter", topic, "-c", MISSPELT).failed(1, said)
    run("configs", "set", "topic", MISSPELT, "--name", topic).failed(1, said)


def test_other_refusals_stay_as_they_are(admin: ottla.Admin) -> None:
    other = KafkaError(ErrorCode.unknown_topic_or_partition, "gone")
    assert suggesting(other, ["retentoin.ms"], TopicConfig.SETTINGS) is other
    value = KafkaError(ErrorCode.invalid_config, "retention.ms: expected a number")
    assert suggesting(value, ["retention.ms", "zzz"], TopicConfig.SETTINGS) is value


@pytest.mark.parametrize("kind", ["group", "brokers"])
def test_groups_and_brokers_have_suggestions_too(run: Run, kind: str) -> None:
    words = {
        "group": ("group", "consumer.sesion.timeout.ms=60000", "--name", "g"),
        "brokers": ("brokers", "message.max.byte=1"),
    }
    meant = {"group": "consumer.session.timeout.ms", "brokers": "message.max.bytes"}
    ran = run("configs", "set", *words[kind])
    if ran.code:
        ran.failed(1, f"did you mean {meant[kind]}?")
