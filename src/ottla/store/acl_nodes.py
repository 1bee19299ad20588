"""ACLs as nodes of the tree: Kafka's JSON, encoded and decoded.

Owns the fields of these nodes, as `nodes` does for all others. Never evaluates an ACL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from ottla.store.nodes import BadNode, dump, load


class RuleText(NamedTuple):
    """One ACL of a resource, as Kafka writes it."""

    principal: str
    permission: str
    operation: str
    host: str


class AclNode(NamedTuple):
    """/kafka-acl/<type>/<name>: the ACLs of one resource, or of a prefix."""

    rules: Sequence[RuleText]

    def encode(self) -> bytes:
        acls = [
            {
                "principal": rule.principal,
                "permissionType": rule.permission,
                "operation": rule.operation,
                "host": rule.host,
            }
            for rule in self.rules
        ]
        return dump({"version": 1, "acls": acls})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        keys = ("principal", "permissionType", "operation", "host")
        try:
            return cls([RuleText(*map(acl.get, keys)) for acl in load(data, "acls")["acls"]])
        except (AttributeError, TypeError) as error:
            raise BadNode(f"invalid ACLs: {data[:100]!r}") from error


class AclChangeNode(NamedTuple):
    """/kafka-acl-changes/acl_changes_<n>: the resource whose ACLs changed."""

    kind: str
    name: str
    pattern: str

    def encode(self) -> bytes:
        if self.pattern == "LITERAL":
            return f"{self.kind}:{self.name}".encode()
        fields = {"resourceType": self.kind, "name": self.name, "patternType": self.pattern}
        return dump({"version": 1, **fields})
