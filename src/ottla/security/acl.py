"""ACLs: which principal may, or may not, do which operation on which resource. Pure.

Owns Kafka's ACL enumerations with their codes, and how a set of ACLs is evaluated: DENY wins over
ALLOW, READ, WRITE, DELETE and ALTER include DESCRIBE, and a resource without ACLs is denied, unless
`allow.everyone.if.no.acl.found` is set. Never knows where ACLs are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.delay.slices import Slices, in_order, in_slices

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
    """Resource types."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Pattern(IntEnum):
    """How the name of an ACL matches resource names; the first three are for filters."""

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
"""The operations that apply to each resource type."""

_INCLUDED_IN: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Operations whose ALLOW includes this one; a DENY includes nothing else."""


class Rule(NamedTuple):
    """One ACL: a resource pattern, and a principal that may or may not do an operation on it."""

    kind: Kind
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission

    @property
    def matches_all_names(self) -> bool:
        return self.name == EVERY_NAME and self.pattern is Pattern.LITERAL

    def covers(self, name: str) -> bool:
        """Whether it applies to the resource of this name."""
        if self.pattern is Pattern.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, EVERY_NAME)

    def applies_to(self, principal: str, host: str) -> bool:
        return self.principal in (principal, ANYBODY) and self.host in (host, ANYWHERE)

    def includes(self, operation: Operation) -> bool:
        if self.operation in (Operation.ALL, operation):
            return True
        return self.permission is Permission.ALLOW and self.operation in _INCLUDED_IN.get(
            operation, ()
        )


class Filter(NamedTuple):
    """Selects ACLs; None and the ANY of each enumeration match everything."""

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
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (Operation.ANY, rule.operation)
            and self.permission in (Permission.ANY, rule.permission)
        )

    def _matches_name(self, rule: Rule) -> bool:
        if self.pattern is Pattern.MATCH:
            return self.name is None or rule.covers(self.name)
        return self.pattern in (Pattern.ANY, rule.pattern) and self.name in (None, rule.name)


class Rules:
    """An immutable set of ACLs, indexed by resource."""

    __slots__ = ("_by_name", "_literal", "_prefixed", "all")

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        all_rules: set[Rule] = set()
        self.all: Set[Rule] = all_rules
        self._literal: dict[tuple[Kind, str], list[Rule]] = {}
        self._prefixed: dict[Kind, list[Rule]] = {}
        self._by_name: dict[str, list[Rule]] = {}
        for rule in rules:
            self._add(rule, all_rules)

    @classmethod
    async def build(cls, rules: Iterable[Rule]) -> Rules:
        """As the constructor, in slices: there may be tens of thousands."""
        built = cls()
        built.all = all_rules = set[Rule]()
        async for rule in in_slices(rules):
            built._add(rule, all_rules)
        return built

    def _add(self, rule: Rule, all_rules: set[Rule]) -> None:
        if rule in all_rules:
            return
        all_rules.add(rule)
        self._by_name.setdefault(rule.name, []).append(rule)
        if rule.pattern is Pattern.PREFIXED:
            self._prefixed.setdefault(rule.kind, []).append(rule)
        else:
            self._literal.setdefault((rule.kind, rule.name), []).append(rule)

    async def matching(self, acl_filter: Filter, slices: Slices) -> list[Rule]:
        """Sorted."""
        rules: Iterable[Rule] = self.all
        if acl_filter.name is not None and acl_filter.pattern is not Pattern.MATCH:
            rules = self._by_name.get(acl_filter.name, ())  # the others cannot match
        found = [rule async for rule in slices.of(rules) if acl_filter.accepts(rule)]
        return await in_order(found)

    def allow(
        self, principal: str, host: str, operation: Operation, kind: Kind, name: str
    ) -> bool | None:
        """Whether it is allowed; None if the resource has no ACL."""
        allowed: bool | None = None
        for rule in self._rules_of(kind, name):
            allowed = bool(allowed)
            if rule.applies_to(principal, host) and rule.includes(operation):
                if rule.permission is Permission.DENY:
                    return False
                allowed = True
        return allowed

    def allow_some(
        self, principal: str, host: str, operation: Operation, kind: Kind
    ) -> bool | None:
        """Whether it is allowed on at least one resource of a type; None if no ACL decides."""
        applicable = [
            rule
            for rule in self.all
            if rule.kind is kind and rule.applies_to(principal, host) and rule.includes(operation)
        ]
        denials = [rule for rule in applicable if rule.permission is Permission.DENY]
        if any(rule.matches_all_names for rule in denials):
            return False
        allows = (rule for rule in applicable if rule.permission is Permission.ALLOW)
        return any(not _is_overridden(allow, denials) for allow in allows) or None

    def _rules_of(self, kind: Kind, name: str) -> Iterator[Rule]:
        yield from self._literal.get((kind, name), ())
        if name != EVERY_NAME:
            yield from self._literal.get((kind, EVERY_NAME), ())
        for rule in self._prefixed.get(kind, ()):
            if rule.covers(name):
                yield rule


def _is_overridden(allow: Rule, denials: Iterable[Rule]) -> bool:
    """Whether one DENY covers everything that an ALLOW covers."""
    if allow.matches_all_names:
        return False
    return any(
        allow.name.startswith(denial.name)
        if denial.pattern is Pattern.PREFIXED
        else denial.name == allow.name and allow.pattern is Pattern.LITERAL
        for denial in denials
    )
