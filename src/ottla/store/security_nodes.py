"""ACLs and delegation tokens as nodes of the tree: Kafka's JSON, encoded and decoded.

Owns the fields of these nodes, as `nodes` does for all others. Never evaluates an ACL. A token's
node holds no secret: its password is derived from its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from ottla.model.clock import WallMs
from ottla.store import paths
from ottla.store.nodes import BadNode, dump, load

ACL_VERSION: Final = 1
"""The only one that Kafka has had."""


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
        return dump({"version": ACL_VERSION, "acls": acls})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """BadNode for another version and for a rule that is not whole: read as far as it is known,
        a denial could deny less than it says, and a permission allow more."""
        keys = ("principal", "permissionType", "operation", "host")
        fields = load(data, "version", "acls")
        if fields["version"] != ACL_VERSION:
            raise BadNode(f"invalid ACLs: expected version {ACL_VERSION}: {data[:100]!r}")
        try:
            rules = [RuleText(*map(acl.get, keys)) for acl in fields["acls"]]
        except (AttributeError, TypeError) as error:
            raise BadNode(f"invalid ACLs: {data[:100]!r}") from error
        if not all(isinstance(text, str) for rule in rules for text in rule):
            raise BadNode(f"invalid ACLs: expected texts in {', '.join(keys)}: {data[:100]!r}")
        return cls(rules)


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


TIMESTAMPS: Final = ("issueTimestamp", "maxTimestamp", "expiryTimestamp")
VERSION: Final = 3
"""Kafka 3.9's; 1 and 2 have no requester, who is the owner."""


class TokenNode(NamedTuple):
    """/delegation_token/tokens/<id>; principals as `User:alice`, encoded as in a URL."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: WallMs
    max_ms: WallMs
    expires_ms: WallMs

    def encode(self) -> bytes:
        return dump(
            {
                "version": VERSION,
                "owner": paths.encoded_user(self.owner),
                "tokenRequester": paths.encoded_user(self.requester),
                "renewers": [paths.encoded_user(renewer) for renewer in self.renewers],
                "issueTimestamp": self.issued_ms,
                "maxTimestamp": self.max_ms,
                "expiryTimestamp": self.expires_ms,
                "tokenId": self.id,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        fields = load(data, "version", "owner", "renewers", "tokenId")
        try:
            if not 1 <= fields["version"] <= VERSION or not all(
                type(fields.get(name)) is int for name in TIMESTAMPS
            ):
                raise BadNode("invalid delegation token: unknown version or no timestamps")
            owner = paths.plain(fields["owner"])
            requester = paths.plain(fields.get("tokenRequester") or fields["owner"])
            renewers = tuple(map(paths.plain, fields["renewers"]))
            times = (WallMs(fields[name]) for name in TIMESTAMPS)
            return cls(str(fields["tokenId"]), owner, requester, renewers, *times)
        except (AttributeError, TypeError) as error:
            raise BadNode(f"invalid delegation token: {data[:100]!r}") from error
