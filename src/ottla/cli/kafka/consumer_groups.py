"""kafka-consumer-groups.sh: list, describe, reset and delete groups, as Kafka's tool does.

Like Kafka's it says failures on stdout and exits with 0 or 1 as that does: scripts look for both.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from ottla.cli.argument_parsing import topic_partitions
from ottla.cli.connection import admin_connection
from ottla.cli.groups.lag import lags
from ottla.cli.kafka import group_lines, group_resets
from ottla.cli.kafka.arguments import Arguments, ToolError, int64, is_given
from ottla.cli.kafka.columns import Column, lines
from ottla.cli.kafka.servers import bootstrap
from ottla.cli.offsets.list import expand_partitions
from ottla.client.admin import Group
from ottla.client.admin.sync import Admin
from ottla.model.errors import KafkaError

ACTIONS: Final = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
NOT_TOGETHER: Final = {
    "group": ("all_groups", "list"),
    "all_groups": ("list",),
    "topic": ("list", "describe"),
    **group_resets.NOT_TOGETHER,
}
STATES: Final = (
    "Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling",
    "Stable",
)  # fmt: skip
TYPES: Final = ("Classic", "Consumer")
STATUSES: Final = (
    Column("TOPIC", 15, grows=True),
    Column("PARTITION", 10),
    Column("STATUS", 15),
)


def run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    action = parser.exactly_one(
        options,
        ACTIONS,
        "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, "
        "--delete-offsets",
    )
    _check(parser, action, options)
    try:
        with admin_connection(bootstrap(options)) as admin:
            _do(action, admin, options)
    except (ToolError, KafkaError) as error:
        print(f"\nError: Executing consumer group command failed due to {error}")
    return 0


def _check(parser: Arguments, action: str, options: Namespace) -> None:
    """Options that are missing, or do not go together, in Kafka's words."""
    said = action.replace("_", "-")
    if action == "delete_offsets":
        if not (options.group and options.topic):
            parser.error(f"Option [{said}] takes the following options: [group], [topic]")
    elif action != "list" and not (options.group or options.all_groups):
        parser.error(f"Option [{said}] takes one of these options: [all-groups], [group]")
    if action == "describe":
        if sum(is_given(options, view) for view in ("members", "offsets", "state")) > 1:
            views = "[members], [offsets], [state]"
            parser.error(f"Option [describe] takes at most one of these options: {views}")
        if options.state:
            parser.error("Option [describe] does not take a value for [state]")
    if action == "delete" and options.topic:
        parser.error(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if options.execute and options.dry_run:
        parser.error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    parser.not_together(options, NOT_TOGETHER)
    _require_known(parser, "state list", "states", options.state, STATES)
    _require_known(parser, "types list", "types", options.type, TYPES)


def _require_known(
    parser: Arguments, what: str, plural: str, text: str | None, known: Sequence[str]
) -> None:
    names = {name.lower() for name in known}
    if any(word.lower() not in names for word in _words(text)):
        parser.error(f"Invalid {what} '{text}'. Valid {plural} are: {', '.join(known)}")


def _do(action: str, admin: Admin, options: Namespace) -> None:
    match action:
        case "list":
            _list(admin, options)
        case "describe":
            _describe(admin, options)
        case "delete":
            _delete(admin, _groups(admin, options))
        case "reset_offsets":
            group_resets.reset(admin, options, _groups(admin, options))
        case _:
            _delete_offsets(admin, options)


def _groups(admin: Admin, options: Namespace) -> list[str]:
    if options.all_groups:
        return [group.id for group in admin.list_groups()]
    groups: list[str] = options.group
    return groups


def _list(admin: Admin, options: Namespace) -> None:
    groups = admin.list_groups(states=_words(options.state), types=_words(options.type))
    consumers = [group for group in groups if group.protocol_type in ("consumer", "")]
    with_types, with_states = options.type is not None, options.state is not None
    for line in group_lines.listing(consumers, types=with_types, states=with_states):
        print(line)


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in text.split(",")] if text else []


def _describe(admin: Admin, options: Namespace) -> None:
    groups = admin.describe_groups(sorted(_groups(admin, options))).all()
    brokers = {one.id: one for one in admin.describe_cluster().brokers}
    for group in groups.values():
        if (remark := group_lines.remark(group)) is not None:
            print(remark, file=sys.stderr)
        if options.state is not None:
            shown = group_lines.states(group, brokers)
        elif options.members:
            shown = group_lines.members(group, verbose=options.verbose) if group.members else []
        else:
            shown = _offsets(admin, group, verbose=options.verbose)
        for line in shown:
            print(line)


def _offsets(admin: Admin, group: Group, *, verbose: bool) -> list[str]:
    rows = lags(admin, group)
    return group_lines.offsets(group, rows, verbose=verbose) if rows else []


def _delete(admin: Admin, groups: list[str]) -> None:
    outcomes = admin.delete_groups(groups)
    if outcomes.failed:
        print("\nError: Deletion of some consumer groups failed:")
        for group, error in outcomes.failed.items():
            print(f"* Group '{group}' could not be deleted due to: {error}")
    if outcomes.succeeded:
        named = ", ".join(f"'{group}'" for group in outcomes.succeeded)
        some = "\nThese consumer groups were deleted successfully: " if outcomes.failed else None
        print(f"{some}{named}" if some else _deletion_text(named))


def _deletion_text(named: str) -> str:
    return f"Deletion of requested consumer groups ({named}) was successful."


def _delete_offsets(admin: Admin, options: Namespace) -> None:
    chosen = [topic_partitions("--topic", text) for text in options.topic]
    for group in options.group:
        outcomes = admin.delete_group_offsets(group, expand_partitions(admin, chosen))
        if outcomes.failed:
            print("\nError: Encounter some partition level error, see the following details:")
        else:
            print(f"Request succeeded for deleting offsets from group {group}.")
        print()
        rows = [
            (one.topic, one.partition, _status(outcome))
            for one, outcome in sorted(outcomes.items())
        ]
        for line in lines(STATUSES, rows):
            print(line)


def _status(outcome: object) -> str:
    return f"Error: {outcome}" if isinstance(outcome, Exception) else "Successful"


def _parser() -> Arguments:
    parser = Arguments(
        "kafka-consumer-groups.sh",
        "List consumer groups, describe them, delete them, or reset their offsets.",
    )
    parser.cluster()
    for action in ("list", "describe", "delete", "reset-offsets", "delete-offsets"):
        parser.flag(f"--{action}")
    parser.add_argument("--group", action="append")
    parser.add_argument("--topic", action="append")
    parser.add_argument("--state", nargs="?", const="")
    parser.add_argument("--type", nargs="?", const="")
    parser.add_argument("--timeout", type=int64, help="accept and ignore, for compatibility")
    for flag in ("all-groups", "all-topics", "members", "offsets", "verbose"):
        parser.flag(f"--{flag}")
    group_resets.add_options(parser)
    return parser
