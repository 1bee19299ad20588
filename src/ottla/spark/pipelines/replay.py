"""Dead letters sent back to where they came from.

Owns: the way back: each record as it was, to the topic its headers name, and the position of the
replay in the dead-letter topic, in one transaction: a replay that is cut off sends nothing twice.
Never: needs Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.client.consumer.record import Record
from ottla.client.consumer.sync import Consumer
from ottla.client.producer.sync import Producer
from ottla.model.ids import TopicPartition
from ottla.spark.pipelines.dead_letters import PREFIX, REASON_HEADER, TOPIC_HEADER

BATCH_RECORDS: Final = 500
WAIT_S: Final = 2.0
REPLAYS_HEADER: Final = "ottla.replays"

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Replayed(NamedTuple):
    """What became of a dead-letter topic's records."""

    sent: Mapping[str, int]
    left: int


def replay(
    bootstrap: str, topic: str, *, reason: str | None = None, to: str | None = None
) -> Replayed:
    """Send every letter back that was not sent before; those with another `reason` are left."""
    group = f"ottla-replay-{topic}"
    sent: dict[str, int] = {}
    left = 0
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap}
    with (
        Consumer(
            topic, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
            isolation_level="read_committed", max_poll_records=BATCH_RECORDS, **settings,
        ) as consumer,
        Producer(transactional_id=group, **settings) as producer,
    ):  # fmt: skip
        producer.init_transactions()
        while letters := consumer.poll(WAIT_S):
            with producer.transaction():
                for letter in letters:
                    target = to or origin(letter.headers)
                    if target is None or not _is_meant(letter.headers, reason):
                        left += 1
                        continue
                    producer.send(
                        target, letter.value, key=letter.key, headers=sent_back(letter.headers)
                    )
                    sent[target] = sent.get(target, 0) + 1
                producer.send_offsets(_after(letters), consumer.group_metadata())
    return Replayed(sent, left)


def origin(headers: Headers) -> str | None:
    """The topic a letter came from; None for a record that is no letter."""
    return _text(headers, TOPIC_HEADER)


def sent_back(headers: Headers) -> list[tuple[str, bytes | None]]:
    """A letter's headers without what made it one, and how often it was sent back."""
    kept = [one for one in headers if not one[0].startswith(PREFIX) and one[0] != REPLAYS_HEADER]
    before = _text(headers, REPLAYS_HEADER) or "0"
    again = int(before) + 1 if before.isdigit() else 1
    return [*kept, (REPLAYS_HEADER, str(again).encode())]


def _is_meant(headers: Headers, reason: str | None) -> bool:
    return reason is None or _text(headers, REASON_HEADER) == reason


def _text(headers: Headers, name: str) -> str | None:
    for key, value in reversed(headers):
        if key == name and value is not None:
            return value.decode("utf-8", "replace")
    return None


def _after(letters: Iterable[Record[Any, Any]]) -> dict[TopicPartition, int]:
    return {TopicPartition(one.topic, one.partition): one.offset + 1 for one in letters}
