"""Settings of a single listener: `listener.name.<name>.` before a setting's own name.

Owns: which settings may be set per listener, and the parsing of their names. Those of SASL may be
of a single mechanism, too: `listener.name.<name>.<mechanism>.sasl.jaas.config`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.network import NetworkSettings
from ottla.config.sasl import MECHANISMS, SaslServerSettings
from ottla.config.security import SecuritySettings
from ottla.config.settings import Setting
from ottla.config.tls import TlsSettings

LIMITS: Final = ("max.connections", "max.connection.creation.rate")
_OFFERED: Final[Mapping[str, Setting]] = {
    **{name: NetworkSettings.SETTINGS[name] for name in LIMITS},
    **TlsSettings.SETTINGS,
    **SaslServerSettings.SETTINGS,
    **{
        name: SecuritySettings.SETTINGS[name]
        for name in SecuritySettings.SETTINGS
        if name.startswith("ssl.")
    },
}
_NAME: Final = re.compile(
    r"listener\.name\.(?P<listener>[a-z0-9_-]+)\."
    rf"(?:(?P<mechanism>{'|'.join(MECHANISMS).lower()})\.)?"
    rf"(?P<base>{'|'.join(map(re.escape, _OFFERED))})"
)


class OfListeners(NamedTuple):
    """Values by listener name, in upper case."""

    max_connections: Mapping[str, int]
    max_connection_creation_rate: Mapping[str, int]
    security: Mapping[str, Mapping[str, str]]
    """Of TLS and SASL: texts by name, without the listener; a mechanism stays before its name."""

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> OfListeners:
        """The settings of single listeners in `texts`; a UserError names an invalid one."""
        limits: dict[str, dict[str, int]] = {base: {} for base in LIMITS}
        security: dict[str, dict[str, str]] = {}
        for name, text in texts.items():
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            base, listener = match["base"], match["listener"].upper()
            value = _OFFERED[base]._replace(name=name).read(text)
            if base in limits:
                assert isinstance(value, int)
                limits[base][listener] = value
            else:
                mechanism = match["mechanism"]
                key = base if mechanism is None else f"{mechanism}.{base}"
                security.setdefault(listener, {})[key] = text
        return cls(limits[LIMITS[0]], limits[LIMITS[1]], security)


def is_of_listener(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def base_name(name: str) -> str:
    """The setting's name without the listener prefix."""
    match = _NAME.fullmatch(name)
    return name if match is None else match["base"]
