"""Settings of a single listener: `listener.name.<name>.` before a setting's own name.

Owns: which settings may be given like that, and for which listener one is. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.network import NetworkSettings

OFFERED: Final = ("max.connections", "max.connection.creation.rate")
_NAME: Final = re.compile(
    rf"listener\.name\.(?P<listener>[a-z0-9_-]+)\.(?P<base>{'|'.join(map(re.escape, OFFERED))})"
)


class OfListeners(NamedTuple):
    """Values by the listener's name in capitals, as listeners are known."""

    max_connections: Mapping[str, int]
    max_connection_creation_rate: Mapping[str, int]

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> OfListeners:
        """Those among `texts`; a UserError names the one that cannot be read."""
        found: dict[str, dict[str, int]] = {base: {} for base in OFFERED}
        for name, text in texts.items():
            match = _NAME.fullmatch(name)
            if match is not None:
                setting = NetworkSettings.SETTINGS[match["base"]]._replace(name=name)
                value = setting.read(text)
                assert isinstance(value, int)
                found[match["base"]][match["listener"].upper()] = value
        return cls(*(found[base] for base in OFFERED))


def is_of_listener(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def base_name(name: str) -> str:
    """The setting a listener's own is one of; any other name as it is."""
    match = _NAME.fullmatch(name)
    return name if match is None else match["base"]
