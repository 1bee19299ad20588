"""How old a record must be before it is read, everywhere or by topic.

Pure. Owns: what the option `ottla.delay` says. Never: looks at a clock; `positions` does the rest.

One source for several delays is one Python process, one question and, while little is due, one
task (`plan`): that is what a delay queue needs to be prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.model.ids import TopicPartition
from ottla.spark.parsed_options import parse_duration_ms

EXAMPLE: Final = '{"later-5s": "5s", "later-1h": "1h"}'


@dataclass(frozen=True)
class Delays:
    """A topic that is not named has the delay of all the others."""

    others_ms: int = 0
    by_topic_ms: Mapping[str, int] = field(default_factory=dict)

    def youngest_ms(
        self, found: Iterable[TopicPartition], now_ms: WallMs
    ) -> dict[TopicPartition, int]:
        """The time from which on records are too young, of the partitions that have a delay."""
        waits_ms = {tp: self.by_topic_ms.get(tp.topic, self.others_ms) for tp in found}
        return {tp: now_ms - wait_ms for tp, wait_ms in waits_ms.items() if wait_ms}

    def check(self, option: str, topics: Iterable[str]) -> None:
        """A delay of a topic that is not read is a mistake, where those that are read are named."""
        read = list(topics)
        for topic in self.by_topic_ms:
            if read and topic not in read:
                raise UserError(f"{option}: {topic} is not read; expected one of {', '.join(read)}")


def parse_delays(option: str, text: str) -> Delays:
    """`5s` for every topic, or JSON that names some."""
    if not text.startswith("{"):
        return Delays(parse_duration_ms(option, text))
    try:
        named: dict[str, Any] = json.loads(text)
    except ValueError:
        raise UserError(f"{option}={text!r}: expected a time, or JSON such as {EXAMPLE}") from None
    for topic, delay in named.items():
        if not isinstance(delay, str):
            raise UserError(f"{option}: {topic}: {delay!r}: expected a time, as in {EXAMPLE}")
    return Delays(
        by_topic_ms={
            topic: parse_duration_ms(f"{option}: {topic}", delay) for topic, delay in named.items()
        }
    )
