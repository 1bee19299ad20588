"""ACLs in requests and replies of the three ACL APIs.

Owns the validation of ACLs and filters. Never stores any.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.api.api import Context, Fields
from ottla.delay.slices import in_slices
from ottla.model.errors import ErrorCode, KafkaError
from ottla.protocol.schema import KioStruct
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


def store_of(ctx: Context, message: str = "No Authorizer is configured.") -> AclStore:
    """The ACL store; SECURITY_DISABLED without an authorizer."""
    if not ctx.services.authorizer.in_force:
        raise KafkaError(ErrorCode.security_disabled, message)
    return ctx.services.shared.acls


def read_rule(entry: KioStruct) -> Rule:
    """The ACL of a creation; INVALID_REQUEST if it is invalid."""
    try:
        rule = Rule(
            Kind(entry.resource_type),
            entry.resource_name,
            Pattern(entry.resource_pattern_type),
            entry.principal,
            entry.host,
            Operation(entry.operation),
            Permission(entry.permission_type),
        )
    except ValueError as unknown:
        raise _invalid(f"Invalid ACL: {unknown}.") from None
    fault = _rule_fault(rule)
    if fault:
        raise _invalid(fault)
    return rule


def read_filter(entry: KioStruct) -> Filter:
    """The filter of a request; INVALID_REQUEST if it is invalid."""
    try:
        filter_ = Filter(
            Kind(entry.resource_type_filter),
            entry.resource_name_filter,
            Pattern(entry.pattern_type_filter),
            entry.principal_filter,
            entry.host_filter,
            Operation(entry.operation),
            Permission(entry.permission_type),
        )
    except ValueError as unknown:
        raise _invalid(f"Invalid ACL filter: {unknown}.") from None
    if 0 in (filter_.kind, filter_.pattern, filter_.operation, filter_.permission):
        raise _invalid(
            "Invalid ACL filter: resource type, pattern type, operation and permission type must "
            "not be UNKNOWN."
        )
    return filter_


async def resources(rules: Iterable[Rule]) -> list[Fields]:
    """ACLs in order, grouped by resource."""
    shown: list[Fields] = []
    acls: list[Fields] = []
    last: tuple[object, ...] = ()
    async for rule in in_slices(rules):
        resource = rule[:3]
        if resource != last:
            last, acls = resource, []
            kind, name, pattern = resource
            shown.append(
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "pattern_type": pattern,
                    "acls": acls,
                }
            )
        acls.append(
            {
                "principal": rule.principal,
                "host": rule.host,
                "operation": rule.operation,
                "permission_type": rule.permission,
            }
        )
    return shown


def whole(rule: Rule) -> Fields:
    """All fields of one ACL."""
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


def _rule_fault(rule: Rule) -> str | None:
    words = (rule.kind, rule.operation, rule.permission)
    if any(word.name in ("UNKNOWN", "ANY") for word in words):
        return (
            "Invalid ACL: resource type, operation and permission type must not be UNKNOWN or ANY."
        )
    if rule.pattern not in (Pattern.LITERAL, Pattern.PREFIXED):
        return "Invalid ACL: the pattern type must be LITERAL or PREFIXED."
    if not rule.name:
        return "Invalid ACL: the resource name must not be empty."
    if rule.kind is Kind.CLUSTER and rule.name != CLUSTER_NAME:
        return f"Invalid ACL: the resource name of the cluster must be {CLUSTER_NAME}."
    kind, _, name = rule.principal.partition(":")
    if not (kind and name):
        return (
            f"Invalid ACL: invalid principal {rule.principal!r}, expected type:name, for example "
            "User:alice."
        )
    return None if rule.host else "Invalid ACL: the host must not be empty; use * for all hosts."


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, message)
