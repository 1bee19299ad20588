"""Access rules as the three ACL APIs carry them: numbers to words, and back.

Owns what makes a rule or a filter unsound. Never keeps any.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ottla.api.api import Context, Fields
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.acl import (
    CLUSTER_NAME,
    Filter,
    Kind,
    Operation,
    Pattern,
    Permission,
    Rule,
)
from ottla.shared_state.acl_store import AclStore


def store_of(ctx: Context) -> AclStore:
    """Where rules are kept, if any can hold here."""
    if not ctx.services.authorizer.in_force:
        message = "No authorizer is configured: set authorizer.class.name."
        raise KafkaError(ErrorCode.security_disabled, message)
    return ctx.services.controller.acls


def read_rule(asked: Any) -> Rule:
    """One rule that shall be kept."""
    try:
        rule = Rule(
            Kind(asked.resource_type),
            asked.resource_name,
            Pattern(asked.resource_pattern_type),
            asked.principal,
            asked.host,
            Operation(asked.operation),
            Permission(asked.permission_type),
        )
    except ValueError as unknown:
        raise _unsound(f"An access rule with {unknown}.") from None
    complaint = _complaint(rule)
    if complaint:
        raise _unsound(complaint)
    return rule


def read_filter(asked: Any) -> Filter:
    """Which rules are meant."""
    try:
        wanted = Filter(
            Kind(asked.resource_type_filter),
            asked.resource_name_filter,
            Pattern(asked.pattern_type_filter),
            asked.principal_filter,
            asked.host_filter,
            Operation(asked.operation),
            Permission(asked.permission_type),
        )
    except ValueError as unknown:
        raise _unsound(f"A filter with {unknown}.") from None
    if 0 in (wanted.kind, wanted.pattern, wanted.operation, wanted.permission):
        raise _unsound("A filter with an unknown word.")
    return wanted


def resources(rules: list[Rule]) -> list[Fields]:
    """Rules in order, those of one resource together."""
    return [
        {
            "resource_type": kind,
            "resource_name": name,
            "pattern_type": pattern,
            "acls": [
                {
                    "principal": rule.principal,
                    "host": rule.host,
                    "operation": rule.operation,
                    "permission_type": rule.permission,
                }
                for rule in some
            ],
        }
        for (kind, name, pattern), some in groupby(rules, key=lambda rule: rule[:3])
    ]


def whole(rule: Rule) -> Fields:
    """One rule with all it says."""
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "resource_type": rule.kind,
        "resource_name": rule.name,
        "pattern_type": rule.pattern,
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation,
        "permission_type": rule.permission,
    }


def _complaint(rule: Rule) -> str | None:
    words = (rule.kind, rule.operation, rule.permission)
    if any(word.name in ("UNKNOWN", "ANY") for word in words):
        return "An access rule names one type, operation and permission: unknown and any are none."
    if rule.pattern not in (Pattern.LITERAL, Pattern.PREFIXED):
        return "The pattern of an access rule is literal or prefixed."
    if not rule.name:
        return "An access rule names a resource."
    if rule.kind is Kind.CLUSTER and rule.name != CLUSTER_NAME:
        return f"The only name of the cluster is {CLUSTER_NAME}."
    kind, _, who = rule.principal.partition(":")
    if not (kind and who):
        return f"{rule.principal!r} is no principal: expected a type and a name, as in User:alice."
    return None if rule.host else "An access rule names a host, or * for all."


def _unsound(message: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, message)
