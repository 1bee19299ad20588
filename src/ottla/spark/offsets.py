"""Where a query begins and ends, and what may have been lost in between.

Owns: the JSON of offsets, timestamps and partitions as Spark's Kafka connector writes it, the
points a user can name, and the findings when what the query counted on is no longer there.
Never: asks a broker. Plain data in, plain data out: a reader is pickled to other machines.

Offsets travel between Spark and us as `{"topic": {"0": 23}}`, sorted, because Spark compares the
text: the same offsets must always give the same JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias, cast

from ottla.model.errors import UserError
from ottla.model.ids import Offset, TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
"""What `-2` and `-1` mean in place of an offset, or of a timestamp."""
MAX_TIMESTAMP: Final = -3
"""In place of a timestamp: the record with the latest one."""
BEGAN: Final = "@began"
"""Stands among the topics of an end; no topic can be named so."""

Offsets: TypeAlias = dict[TopicPartition, Offset]
JsonOffsets: TypeAlias = dict[str, dict[str, Offset]]
StoredOffsets: TypeAlias = Mapping[str, Any]
"""The same, from JSON that another version of this code or a user may have written."""


class Edge(Enum):
    """An end of every partition."""

    EARLIEST = EARLIEST
    LATEST = LATEST


@dataclass(frozen=True)
class AtOffsets:
    """A named offset in every partition; `-2` and `-1` stand for its ends."""

    offsets: Offsets


@dataclass(frozen=True)
class AtTimes:
    """The first record at or after a time, the same everywhere or one for each partition."""

    times_ms: Offsets | int
    latest_if_none: bool = False
    """What a start does where no record is that late: begin at the end, or fail."""

    def time_ms(self, tp: TopicPartition) -> int:
        return self.times_ms if isinstance(self.times_ms, int) else self.times_ms[tp]


Point: TypeAlias = Edge | AtOffsets | AtTimes


class Loss(NamedTuple):
    """Records that a query should have read and can no longer."""

    partition: TopicPartition
    story: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.story}"


class DataLost(Exception):
    """Offsets that the query counts on are gone, and `failOnDataLoss` is true."""

    def __init__(self, losses: Iterable[Loss]) -> None:
        self.losses = tuple(losses)
        details = "; ".join(str(loss) for loss in self.losses)
        super().__init__(
            f"{details}. Some records may be lost: deleted by retention, or with their topic. "
            'To go on without them, set the option "failOnDataLoss" to "false".'
        )

    def __reduce__(self) -> tuple[type[DataLost], tuple[tuple[Loss, ...]]]:
        return DataLost, (self.losses,)


def to_json(offsets: Mapping[TopicPartition, Offset]) -> JsonOffsets:
    """Offsets as Spark keeps them, in one order."""
    nested: JsonOffsets = {}
    for tp in sorted(offsets):
        nested.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return nested


def from_json(nested: StoredOffsets) -> Offsets:
    """What `to_json` gave, possibly to an earlier run."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in nested.items()
        if topic != BEGAN
        for partition, offset in partitions.items()
    }


def with_beginning(end: JsonOffsets, start: Mapping[TopicPartition, Offset]) -> JsonOffsets:
    """The end of a query's first batch, which says where the batch began.

    Spark keeps the ends of batches and asks for the beginning of the first one again when the query
    is restarted during it. By then `latest` is somewhere else. As text, so that whoever looks for
    topics in a query's progress does not take it for one.
    """
    return cast(JsonOffsets, {BEGAN: json.dumps(to_json(start)), **end})


def beginning(end: StoredOffsets) -> Offsets | None:
    """Where a batch began, if its end says so."""
    text = end.get(BEGAN)
    return None if text is None else from_json(json.loads(text))


def parse_offsets(option: str, text: str) -> Offsets:
    """`{"a": {"0": 23, "1": -1}}`, from an option."""
    example = '{"topicA": {"0": 23, "1": -1}, "topicB": {"0": -2}}'
    return _parse_numbers(option, text, example, least=EARLIEST)


def parse_times(option: str, text: str) -> Offsets:
    """`{"a": {"0": 1700000000000}}`, milliseconds since 1970 or -1, -2, -3, from an option."""
    example = '{"topicA": {"0": 1700000000000}}'
    return _parse_numbers(option, text, example, least=MAX_TIMESTAMP)


def parse_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """`{"a": [0, 1]}`, from an option."""
    example = '{"topicA": [0, 1], "topicB": [0]}'
    named = _object(option, text, example)
    partitions: set[TopicPartition] = set()
    for topic, indexes in named.items():
        if not isinstance(indexes, list) or not all(_is_index(index) for index in indexes):
            raise _bad(option, text, example)
        partitions.update(TopicPartition(topic, index) for index in indexes)
    if not partitions:
        raise UserError(f"{option}={text!r}: names no partition; expected such as {example}")
    return tuple(sorted(partitions))


def check_order(start: Point, end: Point, start_option: str, end_option: str) -> None:
    """A start and an end that name partitions must name the same ones, the start first."""
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        _check_order(start.offsets, end.offsets, start_option, end_option)
    elif (
        isinstance(start, AtTimes)
        and isinstance(end, AtTimes)
        and isinstance(start.times_ms, dict)
        and isinstance(end.times_ms, dict)
    ):
        _check_order(start.times_ms, end.times_ms, start_option, end_option)


def check_named(
    option: str, named: Iterable[TopicPartition], read: Iterable[TopicPartition]
) -> None:
    """An option that names partitions must name every one that is read, and no other."""
    named_set, read_set = set(named), set(read)
    if named_set == read_set:
        return
    missing = ", ".join(str(tp) for tp in sorted(read_set - named_set))
    foreign = ", ".join(str(tp) for tp in sorted(named_set - read_set))
    details = "; ".join(
        part
        for part in (missing and f"{missing} missing", foreign and f"{foreign} not being read")
        if part
    )
    raise UserError(
        f"{option}: expected every partition that is read and no other: {details}. "
        "-1 stands for the latest offset, -2 for the earliest."
    )


def losses(start: Offsets, end: Offsets, new: Offsets) -> list[Loss]:
    """What a batch from `start` to `end` can no longer read, as far as its ends show.

    `new` is where partitions begin that are in `end` and not in `start`. Records that retention
    took from below `start` are missed by the task that wants them.
    """
    lost = [
        Loss(tp, "the partition no longer exists")
        for tp in sorted(start.keys() | end.keys())
        if tp not in end or (tp not in start and tp not in new)
    ]
    for tp in sorted(end):
        if tp in start and start[tp] > end[tp]:
            reason = f"read up to {start[tp]}, and the log now ends at {end[tp]}: topic recreated?"
            lost.append(Loss(tp, reason))
        elif new.get(tp, 0) > 0:
            lost.append(Loss(tp, f"a new partition whose first offset is {new[tp]}, not 0"))
    return lost


def _check_order(start: Offsets, end: Offsets, start_option: str, end_option: str) -> None:
    if start.keys() != end.keys():
        only = ", ".join(str(tp) for tp in sorted(start.keys() ^ end.keys()))
        raise UserError(f"{start_option} and {end_option} name different partitions: {only}")
    for tp in sorted(start):
        if 0 <= end[tp] < start[tp]:
            raise UserError(
                f"{start_option}: {start[tp]} for {tp} is after {end_option}, {end[tp]}"
            )


def _parse_numbers(option: str, text: str, example: str, *, least: int) -> Offsets:
    parsed: Offsets = {}
    for topic, numbers in _object(option, text, example).items():
        if not isinstance(numbers, dict):
            raise _bad(option, text, example)
        for index, number in numbers.items():
            if not index.isascii() or not index.isdigit() or not _is_number(number, least):
                raise _bad(option, text, example)
            parsed[TopicPartition(topic, int(index))] = number
    if not parsed:
        raise UserError(f"{option}={text!r}: names no partition; expected such as {example}")
    return parsed


def _object(option: str, text: str, example: str) -> StoredOffsets:
    try:
        parsed = json.loads(text)
    except ValueError:
        raise _bad(option, text, example) from None
    if not isinstance(parsed, dict):
        raise _bad(option, text, example)
    return parsed


def _is_index(value: object) -> bool:
    return _is_number(value, 0)


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _bad(option: str, text: str, example: str) -> UserError:
    return UserError(f"{option}={text!r}: expected JSON such as {example}")
