"""Access rules of a cluster: adding them, seeing them, taking them away.

Owns: how rules and filters are written down with few words, and that a mistake in one is said
before anything is sent. Never: judges by them, which is the broker's to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, Self, TypeVar

from ottla.client.admin import api_keys
from ottla.client.admin.session import Answers, Outcomes, Session, refused
from ottla.client.cluster import Target, To
from ottla.client.errors import KafkaError, UserError
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
"""Words that say nothing definite; a rule has none of them."""


def word(kind: type[Word], said: Word | str) -> Word:
    """A word of the rules as people write it: `describe-configs`, `DESCRIBE_CONFIGS`, ..."""
    if isinstance(said, kind):
        return said
    wanted = str(said).replace("_", "").replace("-", "").replace(" ", "").upper()
    known = {each.name.replace("_", ""): each for each in kind if each.name != "UNKNOWN"}
    if wanted not in known:
        words = ", ".join(spelled(each) for each in known.values())
        raise UserError(f"{kind.__name__.lower()} {str(said)!r}: expected one of {words}")
    return known[wanted]


def spelled(word: IntEnum) -> str:
    return word.name.lower().replace("_", "-")


class AclRule(Rule):
    """One ACL: who may, or may not, do one thing with a resource, or a family of them.

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
        """Somebody may do something with a resource; the cluster alone needs no name."""
        kind = word(Kind, kind)
        resource = (kind, _name(kind, name), word(Pattern, pattern))
        return cls(*resource, principal, host, word(Operation, operation), Permission.ALLOW)

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
        """Somebody may not do something, whatever other rules allow."""
        allowed = cls.allow(principal, operation, kind, name, host=host, pattern=pattern)
        return allowed._replace(permission=Permission.DENY)

    def __str__(self) -> str:
        what = f"{spelled(self.operation)} {spelled(self.kind)} {self.name}"
        family = "..." if self.pattern is Pattern.PREFIXED else ""
        place = "" if self.host == ANYWHERE else f" from {self.host}"
        return f"{spelled(self.permission)} {self.principal} to {what}{family}{place}"


class AclFilter(Filter):
    """Which ACLs are meant; what is not given is no condition.

    With `pattern="match"` the name is a resource's, and all rules that speak of it are meant.

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
        resource = (word(Kind, kind), name, word(Pattern, pattern))
        what = (word(Operation, operation), word(Permission, permission))
        return super().__new__(cls, *resource, principal, host, *what)

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), self._asdict()

    @classmethod
    def exactly(cls, rule: Rule) -> Self:
        """This rule and no other."""
        return cls._make(rule)

    def __str__(self) -> str:
        given = {
            field: spelled(each) if isinstance(each, IntEnum) else each
            for field, each in self._asdict().items()
            if each is not None and each != getattr(EVERY_RULE, field)
        }
        said = ", ".join(f"{field} {each}" for field, each in given.items())
        return f"rules with {said}" if said else "every rule"


EVERY_RULE: Final = AclFilter()


async def create_acls(session: Session, rules: Iterable[Rule]) -> Outcomes[AclRule, None]:
    """Add access rules; one that is there already stays as it is."""
    wanted = [_checked_rule(rule) for rule in rules]

    async def ask(node: To, rules: list[AclRule]) -> Answers[AclRule, None]:
        fields = {"creations": [_creation(rule) for rule in rules]}
        reply = await session.ask(node, api_keys.CREATE_ACLS, fields)
        return dict(zip(rules, map(refused, reply.results), strict=False))

    return await session.each(wanted, session.controller, ask)


async def describe_acls(session: Session, filter: Filter = EVERY_RULE) -> list[AclRule]:
    """The access rules that a filter means, in order; all of them unless told otherwise."""
    fields = _asked(_checked_filter(filter))
    reply = await session.once(Target.ANY, api_keys.DESCRIBE_ACLS, fields)
    return sorted(_rule(each, row) for row in reply.resources for each in row.acls)


async def delete_acls(
    session: Session, filters: Iterable[Filter]
) -> Outcomes[AclFilter, list[AclRule]]:
    """Take access rules away: by filter, those that were taken."""
    wanted = [_checked_filter(each) for each in filters]

    async def ask(node: To, filters: list[AclFilter]) -> Answers[AclFilter, list[AclRule]]:
        fields = {"filters": [_asked(each) for each in filters]}
        reply = await session.ask(node, api_keys.DELETE_ACLS, fields)
        return dict(zip(filters, map(_deleted, reply.filter_results), strict=False))

    return await session.each(wanted, session.controller, ask)


def check_principal(principal: str) -> None:
    """A principal has a type and a name."""
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise UserError(f"principal {principal!r}: expected User:NAME, or User:* for everybody")


def _name(kind: Kind, name: str | None) -> str:
    if name is None and kind is Kind.CLUSTER:
        return CLUSTER_NAME
    if not name:
        raise UserError(f"name: say which {spelled(kind)} is meant, or * for every one")
    return name


def _checked_rule(rule: Rule) -> AclRule:
    if not isinstance(rule, Rule):
        raise UserError(f"expected a list of AclRule, found {rule!r} in it")
    checked = AclRule._make(rule)._replace(**_words(rule))
    for each in (checked.kind, checked.pattern, checked.operation, checked.permission):
        if each.name in FOR_FILTERS:
            named = type(each).__name__.lower()
            raise UserError(f"{named} {spelled(each)}: a rule says which one it is about")
    check_principal(checked.principal)
    _check_texts(checked)
    if checked.kind is Kind.CLUSTER and checked.name != CLUSTER_NAME:
        raise UserError(f"name {checked.name!r}: the cluster's only name is {CLUSTER_NAME}")
    return checked


def _checked_filter(filter: Filter) -> AclFilter:
    if not isinstance(filter, Filter):
        raise UserError(f"expected AclFilter, found {filter!r}")
    checked = AclFilter._make(filter)._replace(**_words(filter))
    for each in (checked.kind, checked.pattern, checked.operation, checked.permission):
        if each.name == "UNKNOWN":
            raise UserError(f"{type(each).__name__.lower()}: a filter cannot ask for unknown ones")
    if checked.principal is not None:
        check_principal(checked.principal)
    _check_texts(checked)
    return checked


def _words(one: Rule | Filter) -> dict[str, Any]:
    return {
        "kind": word(Kind, one.kind),
        "pattern": word(Pattern, one.pattern),
        "operation": word(Operation, one.operation),
        "permission": word(Permission, one.permission),
    }


def _check_texts(one: Rule | Filter) -> None:
    for field in ("name", "host"):
        if getattr(one, field) == "":
            raise UserError(f"{field}: expected a text that is not empty, or *")


def _creation(rule: AclRule) -> Fields:
    return {
        "resource_type": int(rule.kind),
        "resource_name": rule.name,
        "resource_pattern_type": int(rule.pattern),
        "principal": rule.principal,
        "host": rule.host,
        "operation": int(rule.operation),
        "permission_type": int(rule.permission),
    }


def _asked(filter: AclFilter) -> Fields:
    return {
        "resource_type_filter": int(filter.kind),
        "resource_name_filter": filter.name,
        "pattern_type_filter": int(filter.pattern),
        "principal_filter": filter.principal,
        "host_filter": filter.host,
        "operation": int(filter.operation),
        "permission_type": int(filter.permission),
    }


def _deleted(row: Any) -> list[AclRule] | KafkaError:
    for one in (row, *row.matching_acls):
        why_not = refused(one)
        if why_not is not None:
            return why_not
    return sorted(_rule(each, each) for each in row.matching_acls)


def _rule(entry: Any, resource: Any) -> AclRule:
    return AclRule(
        _known(Kind, resource.resource_type),
        resource.resource_name,
        _known(Pattern, resource.pattern_type),
        entry.principal,
        entry.host,
        _known(Operation, entry.operation),
        _known(Permission, entry.permission_type),
    )


def _known(kind: type[Word], number: int) -> Word:
    """A word that a newer broker knows of is unknown here, and no reason to fail."""
    return kind(number) if number in kind.__members__.values() else kind.UNKNOWN
