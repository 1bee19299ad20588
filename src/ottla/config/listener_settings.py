"""Settings of a single listener: `listener.name.<name>.` before a setting's own name.

Owns: which settings may be set per listener, and the parsing of their names. Pure.
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
    """Values by listener name, in upper case."""

    max_connections: Mapping[str, int]
    max_connection_creation_rate: Mapping[str, int]

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> OfListeners:
        """The settings of single listeners in `texts`; a UserError names an invalid one."""
        by_setting: dict[str, dict[str, int]] = {base: {} for base in OFFERED}
        for name, text in texts.items():
            match = _NAME.fullmatch(name)
            if match is not None:
                setting = NetworkSettings.SETTINGS[match["base"]]._replace(name=name)
                value = setting.read(text)
                assert isinstance(value, int)
                by_setting[match["base"]][match["listener"].upper()] = value
        return cls(*(by_setting[base] for base in OFFERED))


def is_of_listener(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def base_name(name: str) -> str:
    """The setting's name without the listener prefix."""
    match = _NAME.fullmatch(name)
    return name if match is None else match["base"]
