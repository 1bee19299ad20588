"""Options that say which access rules are meant, and those rules.

Pure. Everything that cannot be meant is a UserError, said before a broker is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from itertools import product
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer

from ottla.cli.console import Table
from ottla.client.admin import (
    AclFilter,
    AclKind,
    AclOperation,
    AclPattern,
    AclPermission,
    AclRule,
)
from ottla.client.admin.acls import check_principal, parse_word, word_text
from ottla.model.errors import UserError
from ottla.security.acl import ANYWHERE, CLUSTER_NAME, MEANINGFUL

Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="User:NAME",
        help="Allow this principal; User:* is everybody. Repeatable.",
    ),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny", metavar="User:NAME", help="Deny this principal, whatever else is allowed."
    ),
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        "-o",
        metavar="WORD",
        help="Name the operation: read, write, describe, ... or all.",
    ),
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="Restrict to this host; * is any."),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", help="Select a topic; * is every topic. Repeatable."),
]
Groups = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="Select a consumer group.")
]
TransactionalIds = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", help="Select a transactional id."),
]
OnCluster = Annotated[bool, typer.Option("--cluster", help="Select the cluster itself.")]
Prefixed = Annotated[bool, typer.Option("--prefixed", help="Treat names as prefixes.")]

Texts: TypeAlias = Sequence[str] | None
COLUMNS: Final = ("permission", "principal", "operation", "resource", "name", "pattern", "host")


class AclOptions(NamedTuple):
    """What was given on the command line."""

    allow: Texts = None
    deny: Texts = None
    operation: Texts = None
    host: Texts = None
    topic: Texts = None
    group: Texts = None
    transactional_id: Texts = None
    cluster: bool = False
    prefixed: bool = False

    def rules(self) -> list[AclRule]:
        """The rules that are described in full."""
        resources, people, operations = self._resources(), self._people(), self._operations()
        if not people:
            raise UserError("--allow or --deny is required: a principal, such as User:ann")
        if not operations:
            raise UserError("--operation is required: read, write, describe, ... or all")
        if not resources:
            raise UserError(
                "a resource is required: --topic, --group, --transactional-id or --cluster"
            )
        for (kind, _), operation in product(resources, operations):
            _check_operation(kind, operation)
        for host in self.host or ():
            _check_host(host)
        pattern = AclPattern.PREFIXED if self.prefixed else AclPattern.LITERAL
        every = product(resources, people, self.host or [ANYWHERE], operations)
        return [
            AclRule(kind, name, pattern, who, host, operation, permission)
            for (kind, name), (permission, who), host, operation in every
        ]

    def filters(self, names: AclPattern) -> list[AclFilter]:
        """What is not given is no condition; without --prefixed, `names` is how names are meant."""
        resources: list[tuple[AclKind, str | None]] = [*self._resources()]
        people: list[tuple[AclPermission, str | None]] = [*self._people()]
        hosts: list[str | None] = [*self._texts("--host", self.host)]
        every = product(
            resources or [(AclKind.ANY, None)],
            people or [(AclPermission.ANY, None)],
            hosts or [None],
            self._operations() or [AclOperation.ANY],
        )
        pattern = names if resources else AclPattern.ANY
        return [
            AclFilter(
                kind,
                name,
                pattern=AclPattern.PREFIXED if self.prefixed else pattern,
                principal=who,
                host=host,
                operation=operation,
                permission=permission,
            )
            for (kind, name), (permission, who), host, operation in every
        ]

    def _resources(self) -> list[tuple[AclKind, str]]:
        if self.cluster and self.prefixed:
            raise UserError("--prefixed cannot be combined with --cluster, which has no name")
        named = (
            ("--topic", AclKind.TOPIC, self.topic),
            ("--group", AclKind.GROUP, self.group),
            ("--transactional-id", AclKind.TRANSACTIONAL_ID, self.transactional_id),
        )
        found = [
            (kind, name) for option, kind, given in named for name in self._texts(option, given)
        ]
        return [*found, (AclKind.CLUSTER, CLUSTER_NAME)] if self.cluster else found

    def _people(self) -> list[tuple[AclPermission, str]]:
        for who in (*(self.allow or ()), *(self.deny or ())):
            check_principal(who)
        allowed = [(AclPermission.ALLOW, who) for who in self.allow or ()]
        return [*allowed, *((AclPermission.DENY, who) for who in self.deny or ())]

    def _operations(self) -> list[AclOperation]:
        return [parse_word(AclOperation, text) for text in self.operation or ()]

    @staticmethod
    def _texts(option: str, given: Texts) -> list[str]:
        if any(not text.strip() for text in given or ()):
            raise UserError(f"{option}: expected a name, or *")
        return list(given or ())


def table(title: str, rules: Iterable[AclRule]) -> Table:
    """Rules as people see them."""
    rows = [
        (
            word_text(rule.permission),
            rule.principal,
            word_text(rule.operation),
            word_text(rule.kind),
            rule.name,
            word_text(rule.pattern),
            rule.host,
        )
        for rule in rules
    ]
    return Table(title, COLUMNS, rows)


def _check_operation(kind: AclKind, operation: AclOperation) -> None:
    possible = (*MEANINGFUL[kind], AclOperation.ALL)
    if operation not in possible:
        words = ", ".join(word_text(each) for each in possible)
        raise UserError(f"--operation {word_text(operation)}: with a {word_text(kind)}: {words}")


def _check_host(host: str) -> None:
    """A name would never be compared with anything: brokers see addresses."""
    if host == ANYWHERE:
        return
    try:
        ip_address(host)
    except ValueError:
        raise UserError(f"--host {host!r}: expected an address such as 10.0.0.7, or *") from None
