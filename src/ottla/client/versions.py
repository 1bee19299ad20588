"""Which version of an API to speak with a broker.

Owns: what one broker said it offers, and the choice. Never asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kio.schema.index import api_key_map

from ottla.client.errors import UnsupportedVersion
from ottla.protocol import schema


@dataclass(frozen=True, slots=True)
class Versions:
    """What a broker offers: ranges of versions by API key (inclusive), and features."""

    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    """Level of each feature that the whole cluster has."""
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, reply: Any) -> Versions:
        """As an ApiVersions reply says it."""
        return cls(
            {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys},
            {each.name: each.max_version_level for each in reply.finalized_features},
            {each.name: (each.min_version, each.max_version) for each in reply.supported_features},
        )

    def offers(self, key: int, version: int = 0) -> bool:
        """Whether the broker speaks this API in `version` or newer."""
        return key in self.ranges and self.ranges[key][1] >= version

    def pick(self, key: int, at_most: int | None = None) -> int:
        """The newest version that both sides speak."""
        ours = [each for each in schema.versions(key) if at_most is None or each <= at_most]
        low, high = self.ranges.get(key, (0, -1))
        shared = [each for each in ours if low <= each <= high]
        if shared:
            return shared[-1]
        name = api_key_map.get(key, f"api {key}")
        offered = f"offers versions {low} to {high}" if key in self.ranges else "does not offer it"
        spoken = f"{ours[0]} to {ours[-1]}" if ours else "none"
        raise UnsupportedVersion(f"{name}: the broker {offered}; this client speaks {spoken}")
