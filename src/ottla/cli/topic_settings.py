"""The topic settings that `ottla adopt --configs FILE` reads.

Owns: the two forms of the file. Never: judges a setting; the plan does.

Either JSON, `{"orders": {"cleanup.policy": "compact"}}`, or what Kafka itself prints while it still
runs:

    kafka-configs.sh --bootstrap-server … --entity-type topics --describe > FILE
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from ottla.model.errors import UserError

Settings: TypeAlias = dict[str, dict[str, str]]

_TOPIC: Final = re.compile(r"(?:Dynamic|All) configs for topic (\S+) are:")
_SETTING: Final = re.compile(r"\s+(\S+?)=(.*) sensitive=(?:true|false) synonyms=\{(.*)\}\s*")


def parse(text: str, *, source: str) -> Settings:
    """Settings by topic, in whichever form they come."""
    if text.lstrip().startswith("{"):
        return _from_json(text, source)
    return _from_kafka(text, source)


def _from_json(text: str, source: str) -> Settings:
    try:
        topics = json.loads(text)
    except ValueError as error:
        raise UserError(f"{source}: not JSON: {error}") from None
    for topic, settings in topics.items():
        good = isinstance(settings, dict) and all(
            isinstance(value, str | int | float) for value in settings.values()
        )
        if not good:
            raise UserError(
                f'{source}: {topic}: expected an object such as {{"cleanup.policy": "compact"}}'
            )
    return {
        topic: {name: _text(value) for name, value in settings.items()}
        for topic, settings in topics.items()
    }


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_kafka(text: str, source: str) -> Settings:
    topics: Settings = {}
    current: dict[str, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if heading := _TOPIC.fullmatch(line.strip()):
            current = topics.setdefault(heading[1], {})
        elif setting := _SETTING.fullmatch(line):
            if current is None:
                raise UserError(f"{source}, line {number}: a setting before the first topic")
            name, value, synonyms = setting.groups()
            if "DYNAMIC_TOPIC_CONFIG" in synonyms:  # else the broker's own, shown by --all
                current[name] = value
        elif line.strip():
            raise UserError(
                f"{source}, line {number}: expected JSON, "
                "or what kafka-configs.sh --describe prints"
            )
    return topics
