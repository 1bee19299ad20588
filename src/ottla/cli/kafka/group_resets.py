"""`kafka-consumer-groups.sh --reset-offsets`: where groups go on, moved or only shown.

Owns: its options and what it prints; where offsets go is decided by `ottla groups reset-offsets`.
"""

from __future__ import annotations

import csv
import re
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ottla.cli.argument_parsing import moment_ms, shorten, topic_partitions, whole_value
from ottla.cli.groups.plan import OffsetMove, ResetTarget, at_time, bounds, plan_offsets
from ottla.cli.kafka.arguments import Arguments, ToolError, int64
from ottla.cli.kafka.columns import Column, lines
from ottla.cli.offsets.list import expand_partitions
from ottla.client.admin.sync import Admin
from ottla.model.clock import SystemClock
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition

COLUMNS: Final = (
    Column("GROUP", 15, grows=True),
    Column("TOPIC", 15, grows=True),
    Column("PARTITION", 10),
    Column("NEW-OFFSET", 0),
)
TARGETS: Final = (
    "to_offset", "to_datetime", "by_duration", "to_earliest", "to_latest", "to_current",
    "shift_by", "from_file",
)  # fmt: skip
NOT_TOGETHER: Final = {
    target: tuple(other for other in TARGETS if other != target) for target in TARGETS
}
INACTIVE: Final = ("Empty", "Dead")
_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.\d+)?S)?)?", re.IGNORECASE
)
DIGITS_MAX: Final = 12
INT32_MAX: Final = 2**31 - 1
_PARTS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


def add_options(parser: Arguments) -> None:
    for flag in ("to-earliest", "to-latest", "to-current", "execute", "dry-run", "export"):
        parser.flag(f"--{flag}")
    parser.add_argument("--to-offset", type=int64)
    parser.add_argument("--shift-by", type=int64)
    parser.add_argument("--to-datetime", metavar="YYYY-MM-DDThh:mm:ss.sss")
    parser.add_argument("--by-duration", metavar="PnDTnHnMnS")
    parser.add_argument("--from-file", type=Path, metavar="CSV")


def reset(admin: Admin, options: Namespace, groups: list[str]) -> None:
    """Move the offsets of each group, or with no --execute show where they would go."""
    rows: list[tuple[str, TopicPartition, int]] = []
    for group in groups:
        if not _is_inactive(admin, group):
            continue
        plan = _plan(admin, options, group)
        if options.execute:
            admin.alter_group_offsets(group, plan).all()
        rows += [(group, partition, offset) for partition, offset in plan.items()]
    if options.export:
        table = csv.writer(sys.stdout, lineterminator="\n")
        for group, partition, offset in rows:
            named = (group,) if len(groups) > 1 else ()
            table.writerow((*named, partition.topic, partition.partition, offset))
        print()
        return
    print()
    cells = [
        (group, partition.topic, partition.partition, offset) for group, partition, offset in rows
    ]
    for line in lines(COLUMNS, cells):
        print(line)


def _is_inactive(admin: Admin, group: str) -> bool:
    described = admin.describe_groups([group])[group]
    if isinstance(described, KafkaError) and described.code is ErrorCode.group_id_not_found:
        return True
    if isinstance(described, Exception):
        raise described
    if described.state not in INACTIVE:
        print(
            f"\nError: Assignments can only be reset if the group '{group}' is inactive, but the "
            f"current state is {described.state}."
        )
        return False
    return True


def _plan(admin: Admin, options: Namespace, group: str) -> dict[TopicPartition, int]:
    committed = {
        partition: committed_offset.offset
        for partition, committed_offset in admin.list_group_offsets(group).all().items()
    }
    if options.from_file is not None:
        targets = _from_file(options.from_file, group)
        room = bounds(admin, targets)
        return {
            partition: min(max(offset, room[partition].start), room[partition].end)
            for partition, offset in targets.items()
        }
    if options.all_topics:
        partitions: Iterable[TopicPartition] = sorted(committed)
    elif options.topic:
        selections = [topic_partitions("--topic", text) for text in options.topic]
        partitions = expand_partitions(admin, selections)
    else:
        raise ToolError("One of the reset scopes should be defined: --all-topics, --topic.")
    target = _reset_target(options)
    times = at_time(admin, partitions, target.number) if target.move is OffsetMove.TIME else {}
    return plan_offsets(target, bounds(admin, partitions), committed, times)


def _reset_target(options: Namespace) -> ResetTarget:
    targets = [
        target
        for target in (
            ResetTarget(OffsetMove.EARLIEST) if options.to_earliest else None,
            ResetTarget(OffsetMove.LATEST) if options.to_latest else None,
            ResetTarget(OffsetMove.CURRENT) if options.to_current else None,
            None
            if options.to_offset is None
            else ResetTarget(OffsetMove.OFFSET, options.to_offset),
            None if options.shift_by is None else ResetTarget(OffsetMove.SHIFT, options.shift_by),
            _moment(options),
        )
        if target is not None
    ]
    if len(targets) != 1:
        raise ToolError(
            "Option [reset-offsets] takes one of these options: [to-offset], [shift-by], "
            "[to-datetime], [by-duration], [to-earliest], [to-latest], [to-current], [from-file]"
        )
    return targets[0]


def _moment(options: Namespace) -> ResetTarget | None:
    now_ms = SystemClock().wall_ms()
    if options.to_datetime is not None:
        return ResetTarget(OffsetMove.TIME, moment_ms("--to-datetime", options.to_datetime, now_ms))
    if options.by_duration is not None:
        length_ms = iso_duration_ms(options.by_duration)
        if length_ms > now_ms:
            raise UserError(f"--by-duration {options.by_duration!r}: that is before 1970")
        return ResetTarget(OffsetMove.TIME, now_ms - length_ms)
    return None


def iso_duration_ms(text: str) -> int:
    """`P1DT2H`, as ISO 8601 has it."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise UserError(f"--by-duration {text!r}: expected a duration such as P1DT2H30M")
    if max(len(part or "") for part in match.groups()) > DIGITS_MAX:
        raise UserError(f"--by-duration {shorten(text)}: expected at most {DIGITS_MAX} digits")
    return sum(int(part or 0) * ms for part, ms in zip(match.groups(), _PARTS_MS, strict=True))


def _from_file(path: Path, group: str) -> dict[TopicPartition, int]:
    """What --export printed: topic, partition, offset; with several groups the group first."""
    offsets = {}
    try:
        for row in csv.reader(path.read_text(encoding="utf-8").splitlines()):
            if row and (len(row) == 3 or row[0] == group):
                topic, partition, offset = row[-3:]
                number = whole_value(partition, most=INT32_MAX)
                offsets[TopicPartition(topic, number)] = whole_value(offset)
    except OSError as error:
        raise UserError(f"--from-file {path}: {error.strerror}") from None
    except (ValueError, csv.Error):
        raise UserError(f"--from-file {path}: expected lines such as orders,0,42") from None
    return offsets
