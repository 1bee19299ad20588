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
