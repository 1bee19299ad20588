"""Access rules: who may, or may not, do what with which resource. Pure.

Owns the words of Kafka's ACLs with their numbers, and what follows from a set of rules: a denial
beats every permission, permissions to change a thing include describing it, and what no rule speaks
of is refused, or allowed where the cluster is set up so. Never knows where rules are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

ANYBODY: Final = "User:*"
ANYWHERE: Final = "*"
EVERY_NAME: Final = "*"
CLUSTER_NAME: Final = "kafka-cluster"


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Kind(IntEnum):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Pattern(IntEnum):
    """How a rule's name is compared with a resource's; the first three are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


MEANINGFUL: Final = {
    Kind.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER,
        Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    Kind.GROUP: (
        Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    Kind.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
    ),
    Kind.TRANSACTIONAL_ID: (
        Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT,
    ),
    Kind.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Kind.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}  # fmt: skip
"""What can be done with a resource of each kind."""

_INCLUDED_IN: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""What a permission for something else permits as well; a denial of it denies no more."""


class Rule(NamedTuple):
    """One ACL: a resource or a family of them, and who may or may not do one thing with it."""

    kind: Kind
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission

    @property
    def is_about_all(self) -> bool:
        return self.name == EVERY_NAME and self.pattern is Pattern.LITERAL

    def covers(self, name: str) -> bool:
        """Whether it speaks of the resource of this name."""
        if self.pattern is Pattern.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, EVERY_NAME)

    def concerns(self, principal: str, host: str) -> bool:
        return self.principal in (principal, ANYBODY) and self.host in (host, ANYWHERE)

    def speaks_of(self, operation: Operation) -> bool:
        if self.operation in (Operation.ALL, operation):
            return True
        return self.permission is Permission.ALLOW and self.operation in _INCLUDED_IN.get(
            operation, ()
        )


class Filter(NamedTuple):
    """Which rules are meant; None and the ANY of each word stand for all."""

    kind: Kind
    name: str | None
    pattern: Pattern
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def accepts(self, rule: Rule) -> bool:
        return (
            self.kind in (Kind.ANY, rule.kind)
            and self._names(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def _names(self, rule: Rule) -> bool:
        if self.pattern is Pattern.MATCH:
            return self.name is None or rule.covers(self.name)
        return self.pattern in (Pattern.ANY, rule.pattern) and self.name in (None, rule.name)


class Rules:
    """A set of rules that never changes, arranged by what they are about."""

    __slots__ = ("_literal", "_named", "_prefixed", "all")

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.all = frozenset(rules)
        self._literal: dict[tuple[Kind, str], list[Rule]] = {}
        self._prefixed: dict[Kind, list[Rule]] = {}
        self._named: dict[str, list[Rule]] = {}
        for rule in self.all:
            self._named.setdefault(rule.name, []).append(rule)
            if rule.pattern is Pattern.PREFIXED:
                self._prefixed.setdefault(rule.kind, []).append(rule)
            else:
                self._literal.setdefault((rule.kind, rule.name), []).append(rule)

    def matching(self, wanted: Filter) -> list[Rule]:
        rules: Iterable[Rule] = self.all
        if wanted.name is not None and wanted.pattern is not Pattern.MATCH:
            rules = self._named.get(wanted.name, ())  # only what is called so can be meant
        return sorted(rule for rule in rules if wanted.accepts(rule))

    def allow(
        self, principal: str, host: str, operation: Operation, kind: Kind, name: str
    ) -> bool | None:
        """Whether it is allowed; None when no rule speaks of the resource at all."""
        allowed: bool | None = None
        for rule in self._about(kind, name):
            allowed = bool(allowed)
            if rule.concerns(principal, host) and rule.speaks_of(operation):
                if rule.permission is Permission.DENY:
                    return False
                allowed = True
        return allowed

    def allow_some(
        self, principal: str, host: str, operation: Operation, kind: Kind
    ) -> bool | None:
        """Whether it is allowed with at least one resource of a kind; None when no rule says."""
        spoken = [
            rule
            for rule in self.all
            if rule.kind is kind and rule.concerns(principal, host) and rule.speaks_of(operation)
        ]
        denials = [rule for rule in spoken if rule.permission is Permission.DENY]
        if any(rule.is_about_all for rule in denials):
            return False
        permits = (rule for rule in spoken if rule.permission is Permission.ALLOW)
        return any(not _buried(permit, denials) for permit in permits) or None

    def _about(self, kind: Kind, name: str) -> Iterator[Rule]:
        yield from self._literal.get((kind, name), ())
        if name != EVERY_NAME:
            yield from self._literal.get((kind, EVERY_NAME), ())
        for rule in self._prefixed.get(kind, ()):
            if rule.covers(name):
                yield rule


def _buried(permit: Rule, denials: Iterable[Rule]) -> bool:
    """Whether everything that a permission speaks of is denied by one rule."""
    if permit.is_about_all:
        return False
    return any(
        permit.name.startswith(denial.name)
        if denial.pattern is Pattern.PREFIXED
        else denial.name == permit.name and permit.pattern is Pattern.LITERAL
        for denial in denials
    )
