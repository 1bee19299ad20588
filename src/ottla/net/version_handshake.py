"""The first exchange on a connection to a broker: which APIs and versions it supports.

Owns the ApiVersions exchange, and how a common version is chosen. Never keeps a connection.
Shared by the clients and by brokers that call each other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ottla.model.errors import ErrorCode
from ottla.net.outbound_connection import Ask
from ottla.protocol import schema, wire
from ottla.protocol.schema import KioMessage

API_VERSIONS: Final = 18
NEWEST_API_VERSIONS: Final = 4
SOFTWARE: Final = "ottla"
_ERROR: Final = struct.Struct(">ih")


@dataclass(frozen=True, slots=True)
class SupportedVersions:
    """What a broker supports: version ranges by API key (inclusive), and features."""

    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    """The finalized level of each feature."""
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, reply: KioMessage) -> SupportedVersions:
        """From an ApiVersions response."""
        return cls(
            {entry.api_key: (entry.min_version, entry.max_version) for entry in reply.api_keys},
            {entry.name: entry.max_version_level for entry in reply.finalized_features},
            {
                entry.name: (entry.min_version, entry.max_version)
                for entry in reply.supported_features
            },
        )

    def offers(self, key: int, version: int = 0) -> bool:
        """Whether the broker supports this API in `version` or newer."""
        return key in self.ranges and self.ranges[key][1] >= version

    def newest_common(self, key: int, at_most: int | None = None) -> int | None:
        """The newest version that both sides support, or None."""
        low, high = self.ranges.get(key, (0, -1))
        if at_most is not None:
            high = min(high, at_most)
        return max((v for v in schema.versions(key) if low <= v <= high), default=None)


async def request_versions(
    ask: Ask, next_correlation_id: Callable[[], int], client_id: str, address: str
) -> SupportedVersions:
    """What the broker at the other end supports; ConnectionError if it cannot tell."""
    from ottla import __version__

    version = NEWEST_API_VERSIONS
    while True:
        fields = {"client_software_name": SOFTWARE, "client_software_version": __version__}
        frame = await ask(
            wire.encode_request(API_VERSIONS, version, next_correlation_id(), client_id, fields)
        )
        _, code = _ERROR.unpack_from(frame)
        if code != ErrorCode.unsupported_version:
            reply = wire.decode_reply(API_VERSIONS, version, frame)
            if reply.error_code:
                raise ConnectionError(f"{address}: ApiVersions failed: {reply.error_code.name}")
            return SupportedVersions.of(reply)
        # An older broker answers in version 0, and lists the versions it supports.
        listed = SupportedVersions.of(wire.decode_reply(API_VERSIONS, 0, frame))
        offered = listed.ranges.get(API_VERSIONS)
        version = min(version - 1, offered[1] if offered else 0)
        if version < 0:
            raise ConnectionError(f"{address}: no common version of ApiVersions")
