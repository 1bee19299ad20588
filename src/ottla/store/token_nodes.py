"""Delegation tokens as nodes of the tree: Kafka's JSON, encoded and decoded.

Owns the fields of these nodes, as `nodes` does for all others. They hold no secret: the password
of a token is derived from its id.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from ottla.model.clock import WallMs
from ottla.store import paths
from ottla.store.nodes import BadNode, dump, load

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
