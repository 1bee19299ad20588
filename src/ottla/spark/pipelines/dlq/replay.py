"""Dead letters sent back to where they came from.

Owns: one replay of a fixed range, from what was replayed before to the end of the topic at the
start: each record as it was, to the topic its headers name. Letters and the position of the replay
(`replay_positions`) are written in one transaction: a replay that is cut off sends nothing twice.
Never: needs Spark, joins a group, or reads letters that arrive while it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from ottla.client.admin.sync import Admin
from ottla.client.consumer.record import Record
from ottla.client.consumer.sync import Consumer
from ottla.client.producer.sync import Producer
from ottla.model.ids import Offset, TopicPartition
from ottla.spark.pipelines.dlq.letters import PREFIX, REASON_HEADER, TOPIC_HEADER
from ottla.spark.pipelines.dlq.positions import (
    MEMORY,
    TOPIC,
    Key,
    Positions,
    create_topic,
    read_positions,
    read_ranges,
    to_record,
)

BATCH_RECORDS: Final = 500
REPLAYS_HEADER: Final = "ottla.replays"

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of offsets that have been read, and how many there are."""


@dataclass
class Replayed:
    """What became of the letters of a dead-letter topic."""

    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the topic they went to and their reason; in a dry run: would have gone to."""
    before: int = 0
    """Replayed by an earlier run."""
    other_reason: int = 0
    """Left for a later replay."""
    not_letters: int = 0
    """Without an origin in their headers."""


class Selection(NamedTuple):
    """Which letters are sent, and where to."""

    reason: str | None = None
    """None: every reason."""
    to: str | None = None
    """None: the topic that each came from."""
    again: bool = False
    """Also those that were replayed before."""


def replay(
    client: Mapping[str, str],
    topic: str,
    selection: Selection = Selection(),  # noqa: B008 - immutable
    *,
    dry_run: bool = False,
    on_progress: OnProgress = lambda done, total: None,
) -> Replayed:
    """Send the letters of a topic back, up to its present end, each that was not sent before.

    `client` are Kafka's client settings. A dry run counts and writes nothing.
    """
    consumer: Consumer[bytes, bytes] = Consumer(
        config=client, enable_auto_commit=False, auto_offset_reset="earliest",
        isolation_level="read_committed", max_poll_records=BATCH_RECORDS,
    )  # fmt: skip
    with Admin(config=client) as admin, consumer:
        if dry_run:
            return _Replay(admin, consumer, None, topic, selection).run(on_progress)
        create_topic(admin)
        with Producer(config=client, transactional_id=_group(topic)) as producer:
            producer.init_transactions()  # another replay of this topic can send no more
            return _Replay(admin, consumer, producer, topic, selection).run(on_progress)


class _Replay:
    """One replay of one topic."""

    def __init__(
        self,
        admin: Admin,
        consumer: Consumer[bytes, bytes],
        producer: Producer | None,
        topic: str,
        selection: Selection,
    ) -> None:
        self._admin = admin
        self._consumer = consumer
        self._producer = producer
        self._topic = topic
        self._selection = selection
        self._outcome = Replayed()
        self._unsaved: dict[Key, Offset] = {}

    def run(self, on_progress: OnProgress) -> Replayed:
        positions = read_positions(self._admin, self._consumer, self._topic)
        self._add_group_offsets(positions)
        ranges = self._ranges(positions)
        total = sum(end - start for start, end in ranges.values())
        reached = {tp: start for tp, (start, _) in ranges.items()}
        on_progress(0, total)
        for letters in read_ranges(self._consumer, ranges):
            for letter in letters:
                tp = TopicPartition(letter.topic, letter.partition)
                reached[tp] = self._unsaved[tp, self._selection.reason] = letter.offset + 1
            targets = [(self._target(letter, positions), letter) for letter in letters]
            selected = [(target, letter) for target, letter in targets if target is not None]
            if selected:
                self._send(selected)
            on_progress(sum(reached[tp] - start for tp, (start, _) in ranges.items()), total)
        self._send([])
        return self._outcome

    def _target(self, letter: Record[bytes, bytes], positions: Positions) -> str | None:
        """The topic a letter is sent to now; None: it is not sent."""
        reason = _text(letter.headers, REASON_HEADER) or ""
        target = self._selection.to or origin(letter.headers)
        tp = TopicPartition(letter.topic, letter.partition)
        if target is None:
            self._outcome.not_letters += 1
        elif self._selection.reason not in (None, reason):
            self._outcome.other_reason += 1
        elif not self._selection.again and positions.is_replayed(tp, letter.offset, reason):
            self._outcome.before += 1
        else:
            self._outcome.sent[target, reason] += 1
            return target
        return None

    def _send(self, selected: Sequence[tuple[str, Record[bytes, bytes]]]) -> None:
        """Letters and positions, in one transaction."""
        if self._producer is None or not self._unsaved:
            return
        with self._producer.transaction():
            for target, letter in selected:
                self._producer.send(
                    target, letter.value, key=letter.key, headers=sent_back(letter.headers)
                )
            for position in self._unsaved.items():
                key, value = to_record(*position)
                self._producer.send(TOPIC, value, key=key, partition=MEMORY.partition)
        self._unsaved.clear()

    def _add_group_offsets(self, positions: Positions) -> None:
        """Positions of versions that kept them as the offsets of a group."""
        listed = self._admin.list_group_offsets(_group(self._topic)).all()
        for tp, committed in listed.items():
            key = (tp, None)
            if tp.topic == self._topic and committed.offset > positions.offsets.get(key, 0):
                positions.advance(key, committed.offset)
                self._unsaved[key] = committed.offset  # the group's offsets expire

    def _ranges(self, positions: Positions) -> dict[TopicPartition, tuple[Offset, Offset]]:
        partitions = self._consumer.partitions_for(self._topic)
        all_partitions = [TopicPartition(self._topic, index) for index in partitions]
        starts = self._consumer.beginning_offsets(all_partitions)
        ends = self._consumer.end_offsets(all_partitions)
        if not self._selection.again:
            reason = self._selection.reason
            starts = {tp: max(start, positions.start(tp, reason)) for tp, start in starts.items()}
        return {tp: (starts[tp], ends[tp]) for tp in all_partitions}


def origin(headers: Headers) -> str | None:
    """The topic a letter came from; None for a record that is no letter."""
    return _text(headers, TOPIC_HEADER)


def sent_back(headers: Headers) -> list[tuple[str, bytes | None]]:
    """A letter's headers without what made it one, and how often it was sent back."""
    kept = [
        header for header in headers
        if not header[0].startswith(PREFIX) and header[0] != REPLAYS_HEADER
    ]  # fmt: skip
    before = _text(headers, REPLAYS_HEADER) or "0"
    again = int(before) + 1 if before.isdigit() else 1
    return [*kept, (REPLAYS_HEADER, str(again).encode())]


def _group(topic: str) -> str:
    """The transactional id; earlier versions also had a group of this name."""
    return f"ottla-replay-{topic}"


def _text(headers: Headers, name: str) -> str | None:
    for key, value in reversed(headers):
        if key == name and value is not None:
            return value.decode("utf-8", "replace")
    return None
