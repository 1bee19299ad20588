"""`ottla groups reset-offsets`: move where a group goes on.

Shows what it would do, and does it with --execute only: a wrong offset is records read twice, or
never.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.argument_parsing import INT64_MAX, moment_ms, topic_partitions, whole_number
from ottla.cli.completion import topic_names
from ottla.cli.connection import admin_connection
from ottla.cli.console import Table, show
from ottla.cli.groups.plan import OffsetMove, ResetTarget, at_time, bounds, plan_offsets
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.options import DEFAULT_SERVER, AsJson, Bootstrap, GroupArgument
from ottla.client.admin.sync import Admin
from ottla.model.clock import SystemClock
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import TopicPartition

COLUMNS = ("group", "topic", "partition", "from", "to")


ShiftBy = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=-INT64_MAX,
        max=INT64_MAX,
        help="Move by this many records; negative is back.",
    ),
]


ToTime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Move to the first record at or after this time; 2h: 2 hours ago."
    ),
]


def reset_offsets(
    group: GroupArgument,
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:PARTITION,...]",
            help="Name the topics; default: all the group has committed.",
            autocompletion=topic_names,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Move to earliest, latest, current or an offset."),
    ] = None,
    to_time: ToTime = None,
    shift_by: ShiftBy = None,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute/--dry-run", help="Apply the change; without it the plan is only shown."
        ),
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_SERVER,
) -> int:
    """Reset the offsets of a group without members; --execute applies it.

    Examples:
      ottla groups reset-offsets billing --to earliest
      ottla groups reset-offsets billing --topic orders:0 --shift-by -1 --execute
      ottla groups reset-offsets billing --topic orders --to-time 2h
    """
    target = reset_target(to, to_time, shift_by)
    chosen = [topic_partitions("--topic", text) for text in topic or ()]
    with admin_connection(bootstrap) as admin:
        require_inactive(admin, group)
        committed = {
            one: found.offset for one, found in admin.list_group_offsets(group).all().items()
        }
        partitions = expand_partitions(admin, chosen) if chosen else sorted(committed)
        if not partitions:
            raise UserError(f"{group} has no committed offsets; name the topics with --topic")
        times = at_time(admin, partitions, target.number) if target.move is OffsetMove.TIME else {}
        plan = plan_offsets(target, bounds(admin, partitions), committed, times)
        if execute:
            admin.alter_group_offsets(group, plan).all()
    rows = _rows(group, plan, committed)
    show(Table("moved" if execute else "would move", COLUMNS, rows), as_json=as_json)
    return 0


def reset_target(to: str | None, to_time: str | None, shift_by: int | None) -> ResetTarget:
    """The one move that was asked for."""
    given = [each for each in (to, to_time, shift_by) if each is not None]
    if len(given) != 1:
        raise UserError("reset-offsets: give one of --to, --to-time and --shift-by")
    if shift_by is not None:
        return ResetTarget(OffsetMove.SHIFT, shift_by)
    if to_time is not None:
        return ResetTarget(
            OffsetMove.TIME, moment_ms("--to-time", to_time, SystemClock().wall_ms())
        )
    assert to is not None
    if to in ("earliest", "latest", "current"):
        return ResetTarget(OffsetMove(to))
    offset = whole_number("--to", to, "earliest, latest, current or an offset")
    return ResetTarget(OffsetMove.OFFSET, offset)


def require_inactive(admin: Admin, group: str) -> None:
    """Members would go on from where they are, and overwrite what is set here."""
    described = admin.describe_groups([group])[group]
    if isinstance(described, KafkaError) and described.code is ErrorCode.group_id_not_found:
        return  # its first offsets make it
    if isinstance(described, Exception):
        raise described
    if described.members:
        raise KafkaError(
            ErrorCode.non_empty_group,
            f"{group} has {len(described.members)} members ({described.state}): stop them first, "
            "or remove them with: ottla groups members --remove-all",
        )


def _rows(
    group: str, plan: dict[TopicPartition, int], committed: dict[TopicPartition, int]
) -> list[tuple[object, ...]]:
    return [
        (group, one.topic, one.partition, committed.get(one), offset)
        for one, offset in plan.items()
    ]
