"""ACLs of a cluster: creating, describing, deleting them.

Owns: the short spelling of rules and filters, and their check before anything is sent.
Never: authorizes anything; the broker does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, Self, TypedDict, TypeVar

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, error_of
from ottla.client.cluster import Target, To
from ottla.client.errors import KafkaError, UserError
from ottla.protocol.schema import KioStruct
from ottla.protocol.wire import Fields
from ottla.security.acl import (
    ANYWHERE,
    CLUSTER_NAME,
    Filter,
    Kind,
    Operation,
    Pattern,
    Permission,
    Rule,
)

Word = TypeVar("Word", Kind, Operation, Pattern, Permission)

FOR_FILTERS: Final = frozenset({"UNKNOWN", "ANY", "MATCH"})
"""Values for filters only; a rule must not have them."""


def parse_word(kind: type[Word], value: Word | str) -> Word:
    """The value of an ACL field from its name: `describe-configs`, `DESCRIBE_CONFIGS`, ..."""
    if isinstance(value, kind):
        return value
    normalized = str(value).replace("_", "").replace("-", "").replace(" ", "").upper()
    words = {word.name.replace("_", ""): word for word in kind if word.name != "UNKNOWN"}
    if normalized not in words:
        expected = ", ".join(word_text(word) for word in words.values())
        raise UserError(f"{kind.__name__.lower()} {str(value)!r}: expected one of {expected}")
    return words[normalized]


def word_text(word: IntEnum) -> str:
    return word.name.lower().replace("_", "-")


class AclRule(Rule):
    """One ACL: whether a principal may do an operation on a resource, or on all with a prefix.

    >>> AclRule.allow("User:alice", "read", "topic", "orders")
    >>> AclRule.deny("User:*", "write", "topic", "audit-", pattern="prefixed")
    >>> AclRule.allow("User:operator", "alter", "cluster")
    """

    __slots__ = ()

    @classmethod
    def allow(
        cls,
        principal: str,
        operation: Operation | str,
        kind: Kind | str,
        name: str | None = None,
        *,
        host: str = ANYWHERE,
        pattern: Pattern | str = Pattern.LITERAL,
    ) -> Self:
        """Allow a principal an operation on a resource; only the cluster needs no name."""
        kind = parse_word(Kind, kind)
        resource = (kind, _name(kind, name), parse_word(Pattern, pattern))
        return cls(*resource, principal, host, parse_word(Operation, operation), Permission.ALLOW)

    @classmethod
    def deny(
        cls,
        principal: str,
        operation: Operation | str,
        kind: Kind | str,
        name: str | None = None,
        *,
        host: str = ANYWHERE,
        pattern: Pattern | str = Pattern.LITERAL,
    ) -> Self:
        """Deny a principal an operation, whatever other rules allow."""
        allowed = cls.allow(principal, operation, kind, name, host=host, pattern=pattern)
        return allowed._replace(permission=Permission.DENY)

    def __str__(self) -> str:
        access = f"{word_text(self.operation)} {word_text(self.kind)} {self.name}"
        prefix_mark = "..." if self.pattern is Pattern.PREFIXED else ""
        host = "" if self.host == ANYWHERE else f" from {self.host}"
        return f"{word_text(self.permission)} {self.principal} to {access}{prefix_mark}{host}"


class AclFilter(Filter):
    """Selects ACLs; a field that is not set matches everything.

    With `pattern="match"` the name is a resource's, and all rules that apply to it are selected.

    >>> AclFilter("topic", "orders", pattern="match")
    >>> AclFilter(principal="User:alice", permission="deny")
    """

    __slots__ = ()

    def __new__(
        cls,
        kind: Kind | str = Kind.ANY,
        name: str | None = None,
        *,
        pattern: Pattern | str = Pattern.ANY,
        principal: str | None = None,
        host: str | None = None,
        operation: Operation | str = Operation.ANY,
        permission: Permission | str = Permission.ANY,
    ) -> Self:
        resource = (parse_word(Kind, kind), name, parse_word(Pattern, pattern))
        entry = (parse_word(Operation, operation), parse_word(Permission, permission))
        return super().__new__(cls, *resource, principal, host, *entry)

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]:
        return (), self._asdict()

    @classmethod
    def exactly(cls, rule: Rule) -> Self:
        """A filter that matches only this rule."""
        return cls._make(rule)

    def __str__(self) -> str:
        conditions = {
            field: word_text(value) if isinstance(value, IntEnum) else value
            for field, value in self._asdict().items()
            if value is not None and value != getattr(EVERY_RULE, field)
        }
        text = ", ".join(f"{field} {value}" for field, value in conditions.items())
        return f"rules with {text}" if text else "every rule"


EVERY_RULE: Final = AclFilter()


async def create_acls(session: Session, rules: Iterable[Rule]) -> Outcomes[AclRule, None]:
    """Create ACLs; existing ones stay as they are."""
    checked = [_checked_rule(rule) for rule in rules]

    async def ask(node: To, rules: list[AclRule]) -> Answers[AclRule, None]:
        fields = {"creations": [_rule_fields(rule) for rule in rules]}
        reply = await session.ask(node, api_keys.CREATE_ACLS, fields)
        return dict(zip(rules, map(error_of, reply.results), strict=False))

    return await session.for_each(checked, session.controller, ask)


async def describe_acls(session: Session, filter: Filter = EVERY_RULE) -> list[AclRule]:
    """The ACLs that match a filter, sorted; all of them by default."""
    fields = _filter_fields(_checked_filter(filter))
    reply = await session.once(Target.ANY, api_keys.DESCRIBE_ACLS, fields)
    return sorted(_rule(entry, row) for row in reply.resources for entry in row.acls)


async def delete_acls(
    session: Session, filters: Iterable[Filter]
) -> Outcomes[AclFilter, list[AclRule]]:
    """Delete ACLs; by filter, the ones that were deleted."""
    checked = [_checked_filter(filter) for filter in filters]

    async def ask(node: To, filters: list[AclFilter]) -> Answers[AclFilter, list[AclRule]]:
        fields = {"filters": [_filter_fields(filter) for filter in filters]}
        reply = await session.ask(node, api_keys.DELETE_ACLS, fields)
        return dict(zip(filters, map(_deleted_rules, reply.filter_results), strict=False))

    return await session.for_each(checked, session.controller, ask)


def check_principal(principal: str) -> None:
    """A principal has a type and a name."""
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise UserError(f"principal {principal!r}: expected User:NAME, or User:* for everyone")


def _name(kind: Kind, name: str | None) -> str:
    if name is None and kind is Kind.CLUSTER:
        return CLUSTER_NAME
    if not name:
        raise UserError(f"name: expected the name of a {word_text(kind)}, or * for all of them")
    return name


def _checked_rule(rule: Rule) -> AclRule:
    if not isinstance(rule, Rule):
        raise UserError(f"expected a list of AclRule, got {rule!r} in it")
    checked = AclRule._make(rule)._replace(**_parsed_words(rule))
    for word in (checked.kind, checked.pattern, checked.operation, checked.permission):
        if word.name in FOR_FILTERS:
            named = type(word).__name__.lower()
            raise UserError(f"{named} {word_text(word)}: allowed in filters only, not in a rule")
    check_principal(checked.principal)
    _check_not_empty(checked)
    if checked.kind is Kind.CLUSTER and checked.name != CLUSTER_NAME:
        raise UserError(f"name {checked.name!r}: the cluster is always named {CLUSTER_NAME}")
    return checked


def _checked_filter(filter: Filter) -> AclFilter:
    if not isinstance(filter, Filter):
        raise UserError(f"expected AclFilter, got {filter!r}")
    checked = AclFilter._make(filter)._replace(**_parsed_words(filter))
    for word in (checked.kind, checked.pattern, checked.operation, checked.permission):
        if word.name == "UNKNOWN":
            raise UserError(f"{type(word).__name__.lower()}: unknown is not allowed in a filter")
    if checked.principal is not None:
        check_principal(checked.principal)
    _check_not_empty(checked)
    return checked


class _Words(TypedDict):
    kind: Kind
    pattern: Pattern
    operation: Operation
    permission: Permission


def _parsed_words(acl: Rule | Filter) -> _Words:
    return {
        "kind": parse_word(Kind, acl.kind),
        "pattern": parse_word(Pattern, acl.pattern),
        "operation": parse_word(Operation, acl.operation),
        "permission": parse_word(Permission, acl.permission),
    }


def _check_not_empty(acl: Rule | Filter) -> None:
    for field in ("name", "host"):
        if getattr(acl, field) == "":
            raise UserError(f"{field}: must not be empty; use * for all")


def _rule_fields(rule: AclRule) -> Fields:
    return {
        "resource_type": int(rule.kind),
        "resource_name": rule.name,
        "resource_pattern_type": int(rule.pattern),
        "principal": rule.principal,
        "host": rule.host,
        "operation": int(rule.operation),
        "permission_type": int(rule.permission),
    }


def _filter_fields(filter: AclFilter) -> Fields:
    return {
        "resource_type_filter": int(filter.kind),
        "resource_name_filter": filter.name,
        "pattern_type_filter": int(filter.pattern),
        "principal_filter": filter.principal,
        "host_filter": filter.host,
        "operation": int(filter.operation),
        "permission_type": int(filter.permission),
    }


def _deleted_rules(row: KioStruct) -> list[AclRule] | KafkaError:
    for part in (row, *row.matching_acls):
        error = error_of(part)
        if error is not None:
            return error
    return sorted(_rule(acl, acl) for acl in row.matching_acls)


def _rule(entry: KioStruct, resource: KioStruct) -> AclRule:
    return AclRule(
        _word_of_number(Kind, resource.resource_type),
        resource.resource_name,
        _word_of_number(Pattern, resource.pattern_type),
        entry.principal,
        entry.host,
        _word_of_number(Operation, entry.operation),
        _word_of_number(Permission, entry.permission_type),
    )


def _word_of_number(kind: type[Word], number: int) -> Word:
    """UNKNOWN for a number that only newer brokers know."""
    return kind(number) if number in kind.__members__.values() else kind.UNKNOWN
