"""ACL rules for tests, with defaults for what a test does not care about."""

from __future__ import annotations

from ottla.security.acl import Kind, Operation, Pattern, Permission, Rule

ALICE, BOB, HOME, AWAY = "User:alice", "User:bob", "10.0.0.1", "10.0.0.2"


def rule(
    operation: Operation = Operation.READ,
    permission: Permission = Permission.ALLOW,
    *,
    name: str = "orders",
    pattern: Pattern = Pattern.LITERAL,
    principal: str = ALICE,
    host: str = "*",
    kind: Kind = Kind.TOPIC,
) -> Rule:
    return Rule(kind, name, pattern, principal, host, operation, permission)


def deny(operation: Operation = Operation.READ, **rest: object) -> Rule:
    return rule(operation, Permission.DENY, **rest)  # type: ignore[arg-type]
