"""Promises of `ottla.cli.topic_settings`."""

from __future__ import annotations

import pytest

from ottla.cli.topic_settings import parse
from ottla.model.errors import UserError

# As kafka-configs.sh of Kafka 4 prints it.
PRINTED = """Dynamic configs for topic orders are:
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}
  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}
Dynamic configs for topic plain are:
All configs for topic shown.fully are:
  segment.bytes=2048 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=2048, DEFAULT_CONFIG:log.segment.bytes=1}
  flush.ms=9223372036854775807 sensitive=false synonyms={}
"""  # noqa: E501 - it prints long lines


def test_json_gives_settings_by_topic() -> None:
    text = '{"a": {"cleanup.policy": "compact", "retention.ms": 5, "preallocate": true}, "b": {}}'
    assert parse(text, source="x") == {
        "a": {"cleanup.policy": "compact", "retention.ms": "5", "preallocate": "true"},
        "b": {},
    }


def test_what_kafka_prints_is_understood_and_its_defaults_are_left_out() -> None:
    assert parse(PRINTED, source="x") == {
        "orders": {"cleanup.policy": "compact,delete", "retention.ms": "1000"},
        "plain": {},
        "shown.fully": {"segment.bytes": "2048"},
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ('{"a": 1}', "a: expected an object"),
        ('{"a": {"b": []}}', "a: expected an object"),
        ("hello", "line 1: expected JSON"),
        ("  a=b sensitive=false synonyms={}", "line 1: a setting before the first topic"),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UserError, match="there") as refusal:
        parse(text, source="there")
    assert says in str(refusal.value)
