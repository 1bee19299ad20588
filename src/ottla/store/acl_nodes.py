"""How access rules are kept in the tree: Kafka's JSON, both ways.

Owns the fields of these nodes, as `nodes` does those of all others. Never knows what a rule means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from ottla.store.nodes import BadNode, dump, load


class RuleText(NamedTuple):
    """One access rule of a resource, in Kafka's spelling."""

    principal: str
    permission: str
    operation: str
    host: str


class AclNode(NamedTuple):
    """/kafka-acl/<type>/<name>: the access rules of one resource, or of a prefix."""

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
            return cls([RuleText(*map(one.get, keys)) for one in load(data, "acls")["acls"]])
        except (AttributeError, TypeError) as error:
            raise BadNode(f"access rules {data[:100]!r}") from error


class AclChangeNode(NamedTuple):
    """/kafka-acl-changes/acl_changes_<n>: of which resource rules changed."""

    kind: str
    name: str
    pattern: str

    def encode(self) -> bytes:
        if self.pattern == "LITERAL":
            return f"{self.kind}:{self.name}".encode()
        told = {"resourceType": self.kind, "name": self.name, "patternType": self.pattern}
        return dump({"version": 1, **told})
