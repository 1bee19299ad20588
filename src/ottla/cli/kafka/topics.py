"""kafka-topics.sh: create, list, describe, alter and delete topics, as Kafka's tool does."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from ottla.cli.argument_parsing import matching, whole_value
from ottla.cli.argument_parsing import pattern as read_pattern
from ottla.cli.connection import admin_connection
from ottla.cli.kafka.arguments import Arguments, ToolError, int16, int32, key_values
from ottla.cli.kafka.servers import bootstrap
from ottla.cli.kafka.topic_lines import Filters, lines_of
from ottla.cli.topics.show import overrides
from ottla.client.admin import MorePartitions, NewTopic, Resource
from ottla.client.admin.sync import Admin
from ottla.model.errors import ErrorCode, KafkaError, UserError
from ottla.model.ids import INTERNAL_TOPICS

ACTIONS: Final = ("list", "describe", "create", "alter", "delete")
REPORTS: Final = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
NOT_TOGETHER: Final = {
    "config": ("list", "describe", "delete"),
    "partitions": ("list", "describe", "delete"),
    "replication_factor": ("list", "describe", "alter", "delete"),
    "replica_assignment": ("list", "describe", "delete"),
    "if_exists": ("list", "create"),
    "if_not_exists": ("list", "describe", "alter", "delete"),
    "exclude_internal": ("create", "alter", "delete"),
    "topics_with_overrides": ("list", "create", "alter", "delete", *REPORTS),
    **{report: ("list", "create", "alter", "delete") for report in REPORTS},
}
COLLIDES: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
INT32_MAX: Final = 2**31 - 1


def run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    action = parser.exactly_one(
        options,
        ACTIONS,
        "Command must include exactly one action: --list, --describe, --create, --alter or "
        "--delete",
    )
    if action in ("create", "alter", "delete") and not options.topic:
        parser.error(f'Missing required argument "[topic]" for --{action}')
    parser.not_together(options, NOT_TOGETHER)
    if action == "create":
        placed = {"replica_assignment": ("partitions", "replication_factor")}
        parser.not_together(options, placed)
    try:
        with admin_connection(bootstrap(options)) as admin:
            _do(action, admin, options)
    except (ToolError, KafkaError) as error:
        print(f"Error while executing topic command : {error}")
        return 1
    return 0


def _do(action: str, admin: Admin, options: Namespace) -> None:
    match action:
        case "create":
            _create(admin, options)
        case "list":
            print("\n".join(_matching_topics(admin, options, must_exist=False)))
        case "describe":
            _describe(admin, options)
        case "alter":
            _alter(admin, options)
        case _:
            admin.delete_topics(
                _matching_topics(admin, options, must_exist=not options.if_exists)
            ).all()


def _create(admin: Admin, options: Namespace) -> None:
    if "." in options.topic or "_" in options.topic:
        print(COLLIDES)
    if options.partitions is not None and options.partitions < 1:
        raise ToolError("The partitions must be greater than 0")
    if options.replication_factor is not None and options.replication_factor < 1:
        raise ToolError("The replication factor must be between 1 and 32767 inclusive")
    topic = NewTopic(
        options.topic,
        options.partitions or -1,
        options.replication_factor or -1,
        key_values(options.config, "--config"),
        _assignment(options.replica_assignment),
    )
    outcome = admin.create_topics([topic])[topic.name]
    if isinstance(outcome, KafkaError) and outcome.code is ErrorCode.topic_already_exists:
        if options.if_not_exists:
            return
        raise outcome
    if isinstance(outcome, Exception):
        raise outcome
    print(f"Created topic {topic.name}.")


def _alter(admin: Admin, options: Namespace) -> None:
    names = _matching_topics(admin, options, must_exist=not options.if_exists)
    if options.partitions is None:
        raise UserError("--alter: give --partitions; settings are changed with kafka-configs.sh")
    added = _assignment(options.replica_assignment)
    for name in names:
        held = len(admin.describe_topic(name).partitions)
        placed = [brokers for index, brokers in sorted(added.items()) if index >= held]
        admin.create_partitions({name: MorePartitions(options.partitions, placed or None)}).all()


def _describe(admin: Admin, options: Namespace) -> None:
    names = _matching_topics(admin, options, must_exist=not options.if_exists)
    topics = list(admin.describe_topics(names).all().values())
    filters = Filters(
        options.under_replicated_partitions,
        options.unavailable_partitions,
        options.under_min_isr_partitions,
        options.at_min_isr_partitions,
        options.topics_with_overrides,
    )
    settings = overrides(admin, topics)
    least = _min_isr(admin, names) if filters.needs_min_isr else {}
    moves = admin.list_partition_reassignments()
    for topic in topics:
        for line in lines_of(topic, settings[topic.name], filters, least.get(topic.name, 0), moves):
            print(line)


def _min_isr(admin: Admin, names: Sequence[str]) -> dict[str, int]:
    found = admin.describe_configs(
        [Resource.topic(name) for name in names], names=["min.insync.replicas"]
    ).all()
    return {one.name: int(e["min.insync.replicas"].value or 1) for one, e in found.items()}


def _matching_topics(admin: Admin, options: Namespace, *, must_exist: bool) -> list[str]:
    """The topics that --topic names: a regular expression, with commas for or."""
    names = admin.list_topics(internal=True)
    if options.exclude_internal:
        names = [name for name in names if name not in INTERNAL_TOPICS]
    if not options.topic:
        return names
    found = matching(names, read_pattern("--topic", options.topic.replace(",", "|")))
    if must_exist and not found:
        raise ToolError(f"Topic '{options.topic}' does not exist as expected")
    return found


def _assignment(text: str | None) -> dict[int, list[int]]:
    """`0:1,1:2`: the brokers of each partition in turn."""
    try:
        return {
            index: [whole_value(broker, most=INT32_MAX) for broker in brokers.split(":")]
            for index, brokers in enumerate(text.split(",") if text else ())
        }
    except ValueError:
        raise UserError(f"--replica-assignment {text!r}: expected ids such as 0:1,1:2") from None


def _parser() -> Arguments:
    parser = Arguments("kafka-topics.sh", "Create, delete, describe, or change a topic.")
    parser.cluster()
    for action in ACTIONS:
        parser.flag(f"--{action}")
    parser.add_argument("--topic")
    parser.add_argument("--partitions", type=int32)
    parser.add_argument("--replication-factor", type=int16)
    parser.add_argument("--replica-assignment")
    parser.add_argument("--config", action="append")
    for flag in ("if-exists", "if-not-exists", "exclude-internal", "topics-with-overrides"):
        parser.flag(f"--{flag}")
    for kind in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        parser.flag(f"--{kind}-partitions")
    return parser
