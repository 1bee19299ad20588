"""What changed between two looks at a cluster: rates of topics, partitions and groups.

Pure. A partition or group that was not there at the first look has no rate yet; an offset that went
back, because a topic was made anew, counts as nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.cli.console import Table
from ottla.cli.groups.lag import PartitionLag
from ottla.model.clock import MonoMs
from ottla.model.ids import TopicPartition

TOPICS: Final = ("topic", "partitions", "records/s", "end offsets")
PARTITIONS: Final = ("topic", "partition", "records/s", "end offset")
GROUPS: Final = ("group", "state", "members", "records/s", "lag", "catches up in s")


class Sample(NamedTuple):
    """A cluster at one moment: end offsets, and each group's state and committed offsets."""

    at_ms: MonoMs
    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, tuple[str, Sequence[PartitionLag]]]


def rates(before: Sample, now: Sample, *, partitions: bool) -> list[Table]:
    """The tables of `ottla top`, the busiest first."""
    seconds = max(now.at_ms - before.at_ms, 1) / 1_000
    written = {one: _growth(before.ends.get(one), end) / seconds for one, end in now.ends.items()}
    tables = [_topics(now, written)]
    if partitions:
        rows = [
            (one.topic, one.partition, round(written[one], 1), now.ends[one]) for one in written
        ]
        tables.append(Table("partitions", PARTITIONS, _busiest(rows)))
    groups = [_group(before, now, name, seconds) for name in now.groups]
    tables.append(Table("groups", GROUPS, _busiest(groups, at=3), ("catches up in s", "members")))
    return tables


def _topics(now: Sample, written: Mapping[TopicPartition, float]) -> Table:
    rows = []
    for topic in dict.fromkeys(one.topic for one in now.ends):
        mine = [one for one in now.ends if one.topic == topic]
        rate = round(sum(written[one] for one in mine), 1)
        rows.append((topic, len(mine), rate, sum(now.ends[one] for one in mine)))
    return Table("topics", TOPICS, _busiest(rows))


def _group(before: Sample, now: Sample, name: str, seconds: float) -> tuple[object, ...]:
    """How fast a group commits, how far it is behind, and when it would have caught up."""
    state, lags = now.groups[name]
    earlier = {row.partition: row.committed for row in before.groups.get(name, ("", ()))[1]}
    read = sum(
        _growth(earlier.get(row.partition), row.committed)
        for row in lags
        if row.committed is not None
    )
    members = {row.member.id for row in lags if row.member is not None}
    lag, rate = sum(row.lag or 0 for row in lags), round(read / seconds, 1)
    left = 0 if lag == 0 else round(lag / rate) if rate > 0 else None
    return (name, state, len(members), rate, lag, left)


def _growth(before: int | None, now: int) -> int:
    return 0 if before is None else max(now - before, 0)


def _busiest(rows: Iterable[tuple[object, ...]], at: int = 2) -> list[tuple[object, ...]]:
    return sorted(rows, key=lambda row: (-float(str(row[at])), str(row[0]), str(row[1])))
