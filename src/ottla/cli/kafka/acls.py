"""kafka-acls.sh: add, remove and list access rules, as Kafka's tool does."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from ottla.cli.connection import admin_connection
from ottla.cli.kafka.arguments import Arguments, ToolError
from ottla.cli.kafka.servers import bootstrap
from ottla.client.admin import (
    AclFilter,
    AclKind,
    AclOperation,
    AclPattern,
    AclPermission,
    AclRule,
)
from ottla.client.admin.sync import Admin
from ottla.model.errors import KafkaError, UserError
from ottla.security.acl import ANYWHERE, CLUSTER_NAME, MEANINGFUL

NAMED: Final = {
    "topic": AclKind.TOPIC,
    "group": AclKind.GROUP,
    "transactional_id": AclKind.TRANSACTIONAL_ID,
    "delegation_token": AclKind.DELEGATION_TOKEN,
    "user_principal": AclKind.USER,
}
WRITES: Final = (AclOperation.WRITE, AclOperation.DESCRIBE)
PRODUCES: Final = (*WRITES, AclOperation.CREATE)
READS: Final = (AclOperation.READ, AclOperation.DESCRIBE)
NOT_TOGETHER: Final = {
    "list": (
        "producer", "consumer", "allow_host", "allow_principal", "deny_host", "deny_principal",
    ),
    "producer": ("operation", "deny_principal", "deny_host"),
    "consumer": ("operation", "deny_principal", "deny_host"),
}  # fmt: skip
OPERATIONS: Final = {
    each.name.replace("_", ""): each
    for each in AclOperation
    if each not in (AclOperation.UNKNOWN, AclOperation.ANY)
}


class Resource(NamedTuple):
    """What rules are about, as Kafka's tool writes it."""

    kind: AclKind
    name: str
    pattern: AclPattern

    @property
    def filter(self) -> AclFilter:
        return AclFilter(self.kind, self.name, pattern=self.pattern)

    def __str__(self) -> str:
        kind, pattern = self.kind.name, self.pattern.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern})"


class Entry(NamedTuple):
    """What one rule says of it."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    def __str__(self) -> str:
        what = f"operation={self.operation.name}, permissionType={self.permission.name}"
        return f"(principal={self.principal}, host={self.host}, {what})"


Entries = Mapping[Resource, Sequence[Entry]]
CLUSTER: Final = Resource(AclKind.CLUSTER, CLUSTER_NAME, AclPattern.LITERAL)


def run(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    action = parser.exactly_one(
        options,
        ("list", "add", "remove"),
        "Command must include exactly one action: --list, --add, --remove. ",
    )
    _check(parser, options)
    try:
        if action == "list":
            _list(parser, options)
        elif action == "add":
            _add(options, _to_add(parser, options))
        else:
            _remove(options, _entries_of(parser, options))
    except (ToolError, KafkaError, UserError) as error:
        print(f"Error while executing ACL command: {error}")
        return 1
    return 0


def _list(parser: Arguments, options: Namespace) -> None:
    resources = _resources(parser, options)
    principals = _principals(options.principal)
    filters = [filter.filter for filter in resources] or [AclFilter()]
    with admin_connection(bootstrap(options)) as admin:
        rules = sorted({rule for filter in filters for rule in admin.describe_acls(filter)})
    if not principals:
        _show(by_resource(rules))
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        _show(by_resource(rule for rule in rules if rule.principal == principal))


def _show(entries_by_resource: Entries) -> None:
    for resource, entries in entries_by_resource.items():
        lines = "\n".join(f"\t{entry}" for entry in entries)
        print(f"Current ACLs for resource `{resource}`:\n{lines}\n")


def by_resource(rules: Iterable[AclRule]) -> dict[Resource, list[Entry]]:
    """Rules as the tool shows them: under what they are about."""
    entries_by_resource: dict[Resource, list[Entry]] = {}
    for rule in rules:
        resource = Resource(rule.kind, rule.name, rule.pattern)
        entry = Entry(rule.principal, rule.host, rule.operation, rule.permission)
        entries_by_resource.setdefault(resource, []).append(entry)
    return entries_by_resource


def _add(options: Namespace, entries_by_resource: Entries) -> None:
    with admin_connection(bootstrap(options)) as admin:
        for resource, entries in entries_by_resource.items():
            existing = set(admin.describe_acls(resource.filter))
            rules = [_rule(resource, entry) for entry in entries]
            for entry, rule in zip(entries, rules, strict=True):
                if rule in existing:
                    print(f"Acl (pattern={resource}, entry={entry}) already exists.")
            new = [rule for rule in rules if rule not in existing]
            if new:
                lines = "\n".join(f"\t{entry}" for entry in by_resource(new)[resource])
                print(f"Adding ACLs for resource `{resource}`: \n {lines}\n")
                admin.create_acls(new).all()


def _rule(about: Resource, says: Entry) -> AclRule:
    return AclRule(*about, says.principal, says.host, says.operation, says.permission)


def _remove(options: Namespace, entries_by_resource: Entries) -> None:
    agreed = {
        resource: entries
        for resource, entries in entries_by_resource.items()
        if options.force or _confirm(resource, entries)
    }
    with admin_connection(bootstrap(options)) as admin:
        for resource, entries in agreed.items():
            _remove_all(admin, resource, entries)


def _remove_all(admin: Admin, resource: Resource, entries: Sequence[Entry]) -> None:
    filters = [resource.filter._replace(**entry._asdict()) for entry in entries]
    admin.delete_acls(filters or [resource.filter]).all()


def _confirm(resource: Resource, entries: Sequence[Entry]) -> bool:
    if entries:
        lines = "\n".join(f"\t{entry}" for entry in entries)
        what = f"remove ACLs: \n {lines}\n from"
    else:
        what = "delete all ACLs for"
    print(f"Are you sure you want to {what} resource filter `{resource}`? (y/n)", flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _to_add(parser: Arguments, options: Namespace) -> Entries:
    pattern = _pattern(parser, options)
    if pattern not in (AclPattern.LITERAL, AclPattern.PREFIXED):
        parser.error(
            f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls."
        )
    entries_by_resource = _entries_of(parser, options)
    if not all(entries_by_resource.values()):
        parser.error(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return entries_by_resource


def _entries_of(parser: Arguments, options: Namespace) -> Entries:
    """What the options describe; no entries of a resource are all of them."""
    resources = _resources(parser, options)
    if not resources:
        parser.error(
            "You must provide at least one resource: --topic <topic> or --cluster or "
            "--group <group> or --delegation-token <Delegation Token ID>"
        )
    entries_by_resource: dict[Resource, dict[Entry, None]] = {}
    for resource, operations in _operations(options, resources):
        entries_by_resource.setdefault(resource, {}).update(
            dict.fromkeys(_entries(options, operations))
        )
    for resource, entries in entries_by_resource.items():
        valid = (*MEANINGFUL[resource.kind], AclOperation.ALL)
        if any(entry.operation not in valid for entry in entries):
            names = ", ".join(operation.name for operation in valid)
            parser.error(f"ResourceType {resource.kind.name} only supports operations [{names}]")
    return {resource: sorted(entries) for resource, entries in entries_by_resource.items()}


def _operations(
    options: Namespace, resources: Sequence[Resource]
) -> list[tuple[Resource, Sequence[AclOperation]]]:
    """Each resource with what is done to it: as it was said, or as producers and consumers do."""
    if not (options.producer or options.consumer):
        operations_named = [_operation(text) for text in options.operation or ("All",)]
        return [(resource, operations_named) for resource in resources]
    roles: list[tuple[bool, AclKind, Sequence[AclOperation]]] = [
        (options.producer, AclKind.TOPIC, PRODUCES),
        (options.producer, AclKind.TRANSACTIONAL_ID, WRITES),
        (options.idempotent, AclKind.CLUSTER, (AclOperation.IDEMPOTENT_WRITE,)),
        (options.consumer, AclKind.TOPIC, READS),
        (options.consumer, AclKind.GROUP, (AclOperation.READ,)),
    ]
    pairs = [
        (resource, operations)
        for requested, kind, operations in roles
        for resource in (*resources, CLUSTER)
        if requested and resource.kind is kind
    ]
    return list(dict.fromkeys(pairs))


def _entries(options: Namespace, operations: Sequence[AclOperation]) -> list[Entry]:
    sides = (
        (AclPermission.ALLOW, options.allow_principal, options.allow_host),
        (AclPermission.DENY, options.deny_principal, options.deny_host),
    )
    return [
        Entry(principal, host.strip(), operation, permission)
        for permission, principals, hosts in sides
        for principal, host, operation in product(
            _principals(principals), hosts or (ANYWHERE,), operations
        )
    ]


def _resources(parser: Arguments, options: Namespace) -> list[Resource]:
    pattern = _pattern(parser, options)
    resources = [
        Resource(kind, name.strip(), pattern)
        for option, kind in NAMED.items()
        for name in getattr(options, option) or ()
    ]
    if pattern is AclPattern.LITERAL and (options.cluster or options.idempotent):
        resources.append(CLUSTER)
    return resources


def _pattern(parser: Arguments, options: Namespace) -> AclPattern:
    name = options.resource_pattern_type.upper()
    if name == "UNKNOWN" or name not in AclPattern.__members__:
        parser.error(f"Unknown resource-pattern-type: {options.resource_pattern_type}")
    return AclPattern[name]


def _operation(text: str) -> AclOperation:
    return OPERATIONS.get(text.strip().upper(), AclOperation.UNKNOWN)


def _principals(texts: Iterable[str] | None) -> list[str]:
    principals = [text.strip() for text in texts or ()]
    for text in principals:
        if ":" not in text:
            raise ToolError(
                f"expected a string in format principalType:principalName but got {text}"
            )
    return principals


def _check(parser: Arguments, options: Namespace) -> None:
    """Options that do not go together, in Kafka's words."""
    parser.not_together(options, NOT_TOGETHER)
    if options.principal and not options.list:
        parser.error("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        parser.error("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        parser.error("The --idempotent option is only available if --producer is set")
    if options.consumer and not _complete_consumer(options):
        parser.error(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _complete_consumer(options: Namespace) -> bool:
    superfluous = options.cluster or options.transactional_id
    return bool(options.topic and options.group and (options.producer or not superfluous))


def _parser() -> Arguments:
    parser = Arguments("kafka-acls.sh", "Add, remove and list access rules.")
    parser.cluster()
    for flag in ("add", "remove", "list", "cluster", "producer", "consumer", "idempotent", "force"):
        parser.flag(f"--{flag}")
    for option in (*NAMED, "operation", "principal"):
        parser.add_argument(f"--{option.replace('_', '-')}", action="append")
    for side in ("allow", "deny"):
        parser.add_argument(f"--{side}-principal", action="append")
        parser.add_argument(f"--{side}-host", action="append")
    parser.add_argument("--resource-pattern-type", default="LITERAL")
    return parser
