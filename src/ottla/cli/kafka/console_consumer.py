"""kafka-console-consumer.sh: shows records until it is interrupted, or has shown enough.

Without a group it reads every partition itself, and leaves no group behind.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ottla.cli.argument_parsing import matching, whole_number
from ottla.cli.argument_parsing import pattern as read_pattern
from ottla.cli.connection import admin_connection
from ottla.cli.kafka.arguments import Arguments, first_given, int32, int64, key_values, properties
from ottla.cli.kafka.formatters import formatter
from ottla.cli.kafka.servers import bootstrap
from ottla.cli.offsets.list import expand_partitions
from ottla.cli.records.printing import PrintOptions, print_all
from ottla.cli.records.ranges import Batch, ReadRange, read_group, read_span, span
from ottla.cli.records.termination import interrupted_by_sigterm, open_consumer
from ottla.client.admin import OffsetSpec
from ottla.client.admin.sync import Admin
from ottla.client.consumer.sync import Consumer
from ottla.model.clock import SystemClock
from ottla.model.errors import UserError

AUTO_COMMIT: Final = "enable.auto.commit"
ENDS: Final = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}


def run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.topic is None) == (options.include is None):
        parser.error("Exactly one of --include/--topic is required.")
    if options.offset is not None and options.partition is None:
        parser.error("The partition is required when offset is specified.")
    showing = PrintOptions(
        formatter(options.formatter, _formatting(options)),
        most=options.max_messages,
        silence_ms=options.timeout_ms,
    )
    servers = bootstrap(options)
    settings = _settings(options, servers)
    commits = settings.get(AUTO_COMMIT, "true") == "true"
    with admin_connection(servers) as admin:
        topics = _topics(admin, options)
        where = None if "group.id" in settings else _span(admin, topics, options)
    with (
        interrupted_by_sigterm(),
        open_consumer({**settings, AUTO_COMMIT: "false"}) as consumer,
    ):
        if where is None:
            batches = read_group(consumer, topics, follow=True)
            return _show(batches, showing, consumer if commits else None)
        return _show(read_span(consumer, where), showing, None)


def _show(
    batches: Iterable[Batch], showing: PrintOptions, commits: Consumer[bytes, bytes] | None
) -> int:
    count = print_all(batches, showing, SystemClock(), commits=commits)
    print(f"Processed a total of {count} messages", file=sys.stderr)
    return 0


def _topics(admin: Admin, options: Namespace) -> list[str]:
    if options.include is None:
        return [options.topic]
    names = admin.list_topics(internal=False)
    return matching(names, read_pattern("--include", options.include.replace(",", "|")))


def _span(admin: Admin, topics: list[str], options: Namespace) -> ReadRange:
    """Where each partition begins: at its end, unless told otherwise."""
    only = None if options.partition is None else (options.partition,)
    partitions = expand_partitions(admin, [(topic, only) for topic in topics])
    if options.offset is not None and options.offset not in ENDS:
        return ReadRange(dict.fromkeys(partitions, _offset(options.offset)), None)
    first = ENDS[options.offset] if options.offset else None
    if first is None:
        first = OffsetSpec.EARLIEST if options.from_beginning else OffsetSpec.LATEST
    return span(admin, partitions, first, end=None)


def _offset(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise UserError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', "
            "'latest', or a non-negative long."
        )
    return whole_number("--offset", text, "a non-negative long")


def _formatting(options: Namespace) -> dict[str, str]:
    settings = properties(options.formatter_config)
    given = [*(options.property or ()), *(options.formatter_property or ())]
    settings |= key_values(given, "--property")
    for part in ("key", "value"):
        name = getattr(options, f"{part}_deserializer")
        if name is not None:
            settings[f"{part}.deserializer"] = name
    return settings


def _settings(options: Namespace, servers: str) -> dict[str, str]:
    settings = properties(first_given(options, "command_config", "consumer_config"))
    named = [*(options.consumer_property or ()), *(options.command_property or ())]
    settings |= key_values(named, "--consumer-property")
    settings.setdefault("isolation.level", options.isolation_level)
    if options.group is not None:
        settings["group.id"] = options.group
    if options.from_beginning:
        settings["auto.offset.reset"] = "earliest"
    return {**settings, "bootstrap.servers": servers}


def _parser() -> Arguments:
    parser = Arguments("kafka-console-consumer.sh", "Show records on stdout.")
    parser.cluster()
    for option in ("topic", "include", "group", "offset", "formatter"):
        parser.add_argument(f"--{option}")
    for option in ("partition", "max-messages", "timeout-ms"):
        parser.add_argument(f"--{option}", type=int64 if option == "timeout-ms" else int32)
    for option in ("property", "formatter-property", "consumer-property", "command-property"):
        parser.add_argument(f"--{option}", action="append", metavar="KEY=VALUE")
    parser.add_argument("--consumer.config", dest="consumer_config", type=Path, metavar="FILE")
    parser.add_argument("--formatter-config", type=Path, metavar="FILE")
    for option in ("key-deserializer", "value-deserializer"):
        parser.add_argument(f"--{option}", metavar="CLASS")
    parser.add_argument(
        "--isolation-level",
        choices=("read_committed", "read_uncommitted"),
        default="read_uncommitted",
    )
    for flag in ("from-beginning", "skip-message-on-error", "enable-systest-events"):
        parser.flag(f"--{flag}")
    return parser
