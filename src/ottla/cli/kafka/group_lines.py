"""The tables of `kafka-consumer-groups.sh`, with the columns that people cut apart.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.cli.groups.lag import PartitionLag
from ottla.cli.kafka.columns import MISSING, Column, lines
from ottla.client.admin import BrokerInfo, Group, GroupListing, GroupMember
from ottla.model.ids import TopicPartition

_GROUP: Final = Column("GROUP", 15, grows=True)
_MEMBER: Final = Column("CONSUMER-ID", 15, grows=True)
_HOST: Final = Column("HOST", 15, grows=True)
OFFSETS: Final = (
    _GROUP,
    Column("TOPIC", 15, grows=True),
    Column("PARTITION", 10),
    Column("CURRENT-OFFSET", 15),
    Column("LOG-END-OFFSET", 15),
    Column("LAG", 15),
    _MEMBER,
    _HOST,
    Column("CLIENT-ID", 0),
)
STATES: Final = (
    Column("GROUP", 15, grows=True),
    Column("COORDINATOR (ID)", 25, grows=True),
    Column("ASSIGNMENT-STRATEGY", 20),
    Column("STATE", 20),
    Column("#MEMBERS", 0),
)
REBALANCING: Final = frozenset(
    {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)


def listing(groups: Sequence[GroupListing], *, types: bool, states: bool) -> list[str]:
    """Names alone, or with the columns that were asked for."""
    if not types and not states:
        return [group.id for group in groups]
    wide = max((len(group.id) for group in groups), default=15)
    columns = [Column("GROUP", max(wide, 15) + 10)]
    columns += [Column("TYPE", 20)] if types else []
    columns += [Column("STATE", 20)] if states else []
    rows = [
        (group.id, *((group.type.title(),) if types else ()), *((group.state,) if states else ()))
        for group in groups
    ]
    return lines(columns, rows)


def offsets(group: Group, rows: Sequence[PartitionLag], *, verbose: bool = False) -> list[str]:
    """Each partition with how far it is behind, and who reads it."""
    columns = list(OFFSETS)
    if verbose:
        columns.insert(3, Column("LEADER-EPOCH", 15))
    return ["", *lines(columns, [_offset_row(group, row, verbose) for row in rows])]


def _offset_row(group: Group, row: PartitionLag, verbose: bool) -> list[object]:
    topic, index = row.partition or (None, None)
    member = row.member
    who = (None,) * 3 if member is None else (member.id, member.host, member.client_id)
    epoch = [row.leader_epoch] if verbose else []
    return [group.id, topic, index, *epoch, row.committed, row.end, row.lag, *who]


def members(group: Group, *, verbose: bool = False) -> list[str]:
    """Who is in a group; with `verbose` what each has, and shall have."""
    static = any(member.instance_id for member in group.members)
    columns = [_GROUP, _MEMBER]
    columns += [Column("GROUP-INSTANCE-ID", 17, grows=True)] if static else []
    columns += [_HOST, Column("CLIENT-ID", 15, grows=True), Column("#PARTITIONS", 15)]
    if verbose:
        columns += [
            Column("CURRENT-EPOCH", 15),
            Column("CURRENT-ASSIGNMENT", 20, grows=True),
            Column("TARGET-EPOCH", 15),
            Column("TARGET-ASSIGNMENT", 20, grows=True),
        ]
    rows = [_member_row(group, member, static, verbose) for member in group.members]
    return ["", *(f"{line} " if not verbose else line for line in lines(columns, rows))]


def _member_row(group: Group, member: GroupMember, static: bool, verbose: bool) -> list[object]:
    row: list[object] = [group.id, member.id, *((member.instance_id,) if static else ())]
    row += [member.host, member.client_id, len(member.assignment)]
    if verbose:
        target = () if member.target is None else member.target
        row += [member.epoch, assignment(member.assignment)]
        row += [group.epoch if member.target is not None else None, assignment(target)]
    return row


def assignment(partitions: Sequence[TopicPartition]) -> str:
    """`orders:0,1;clicks:3`."""
    topics: dict[str, list[int]] = {}
    for one in sorted(partitions):
        topics.setdefault(one.topic, []).append(one.partition)
    told = ";".join(f"{topic}:{','.join(map(str, each))}" for topic, each in topics.items())
    return told or MISSING


def states(group: Group, brokers: Mapping[int, BrokerInfo]) -> list[str]:
    """Where a group is coordinated, and how it is."""
    broker = brokers.get(group.coordinator)
    where = f"{broker.address if broker else MISSING}  ({group.coordinator})"
    row = (group.id, where, group.assignor, group.state, len(group.members))
    return ["", *lines(STATES, [row])]


def remark(group: Group) -> str | None:
    """What is said on stderr of a group that is not simply stable."""
    if group.state in REBALANCING:
        return f"\nWarning: Consumer group '{group.id}' is rebalancing."
    if group.state == "Empty":
        return f"\nConsumer group '{group.id}' has no active members."
    return None
