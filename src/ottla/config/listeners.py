"""`listeners` and related settings, parsed into endpoints.

Owns: the syntax of a listener, which names and ports may be combined, and which listeners brokers
and the controller use. Never binds a port or resolves a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError

if TYPE_CHECKING:
    from ottla.config.network import NetworkSettings

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ENCRYPTED: Final = frozenset({"SSL", "SASL_SSL"})
WITH_LOGIN: Final = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})

_LISTENER: Final = (
    r"(?P<name>[A-Za-z0-9_-]+)://"
    r"(\[(?P<six>[0-9A-Za-z:.%]*)\]|(?P<host>[^\[\]:/]*)):(?P<port>[0-9]+)"
)


class Endpoint(NamedTuple):
    """One address of one listener. An empty host means every address of the machine."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listeners(NamedTuple):
    """Bound and advertised endpoints, and the listeners with a role."""

    bound: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    inter_broker: str
    control_plane: str | None

    @classmethod
    def of(cls, config: NetworkSettings) -> Listeners:
        """Parse and check all listener settings; a UserError names the invalid one."""
        protocols = _protocols(config.listener_security_protocol_map)
        bound = _parse("listeners", config.listeners, protocols)
        _check_bound(bound)
        advertised_items = config.advertised_listeners
        advertised = (
            _parse("advertised.listeners", advertised_items, protocols)
            if advertised_items
            else bound
        )
        _check_advertised(
            advertised, {endpoint.name for endpoint in bound}, is_explicit=bool(advertised_items)
        )
        inter_broker = _inter_broker(config, advertised)
        control_plane = _control_plane(config, advertised, inter_broker)
        return cls(bound, advertised, inter_broker, control_plane)

    def check_successor(self, successor: Listeners) -> None:
        """UserError if a listener with a role changes, which needs a restart."""
        if successor.inter_broker != self.inter_broker:
            raise UserError(
                f"listeners: the inter-broker listener {self.inter_broker} cannot be removed or "
                "replaced at run time"
            )
        if successor.control_plane != self.control_plane:
            raise UserError(
                f"listeners: the control plane listener {self.control_plane} cannot be changed at "
                "run time"
            )

    def advertised_endpoints(self, ports: Mapping[str, int], *, host: str) -> tuple[Endpoint, ...]:
        """The advertised endpoints with the bound ports; `host` replaces wildcard addresses."""
        return tuple(
            endpoint._replace(
                host=host if not endpoint.host or endpoint.host in EVERY_ADDRESS else endpoint.host,
                port=endpoint.port or ports[endpoint.name],
            )
            for endpoint in self.advertised
        )


def _protocols(pairs: Sequence[str]) -> dict[str, str]:
    key = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for pair in pairs:
        name, colon, protocol = (part.strip() for part in pair.partition(":"))
        if not colon or protocol.upper() not in PROTOCOLS:
            raise UserError(
                f"{key}={pair!r}: expected NAME:PROTOCOL, one of {', '.join(PROTOCOLS)}"
            )
        if name.upper() in protocols:
            raise UserError(f"{key}: the listener name {name} is listed more than once")
        protocols[name.upper()] = protocol.upper()
    return protocols


def _parse(key: str, items: Sequence[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    if not items:
        raise UserError(f"{key}: expected at least one name://host:port")
    return tuple(_endpoint(key, item, protocols) for item in items)


def _endpoint(key: str, item: str, protocols: Mapping[str, str]) -> Endpoint:
    match = re.fullmatch(_LISTENER, item)
    if match is None:
        raise UserError(f"{key}={item!r}: expected name://host:port")
    name, port = match["name"].upper(), int(match["port"])
    if port > 65_535:
        raise UserError(f"{key}={item!r}: expected a port of at most 65535")
    if name not in protocols:
        raise UserError(f"{key}={item!r}: {name} is missing in listener.security.protocol.map")
    return Endpoint(name, match["six"] or match["host"] or "", port, protocols[name])


def _check_bound(bound: Sequence[Endpoint]) -> None:
    for index, endpoint in enumerate(bound):
        for earlier in bound[:index]:
            if endpoint.name == earlier.name:
                raise UserError(f"listeners: the name {endpoint.name} is used more than once")
            if (
                endpoint.port
                and endpoint.port == earlier.port
                and not _can_share_port(endpoint, earlier)
            ):
                raise UserError(
                    f"listeners: {earlier} and {endpoint} use the same port {endpoint.port}"
                )


def _can_share_port(first: Endpoint, second: Endpoint) -> bool:
    """An IPv4 and an IPv6 address may use the same port, as in Kafka."""
    return bool(first.host and second.host) and (":" in first.host) != (":" in second.host)


def _check_advertised(
    advertised: Sequence[Endpoint], bound: set[str], *, is_explicit: bool
) -> None:
    names: set[str] = set()
    for endpoint in advertised:
        if is_explicit and endpoint.host in EVERY_ADDRESS:
            raise UserError(
                f"advertised.listeners={endpoint}: clients cannot connect to {endpoint.host}; "
                "use a host name or address they can reach"
            )
        if endpoint.name not in bound:
            raise UserError(
                f"advertised.listeners={endpoint}: no listener is named {endpoint.name}"
            )
        if endpoint.name in names:
            raise UserError(f"advertised.listeners: {endpoint.name} is listed more than once")
        names.add(endpoint.name)


def _inter_broker(config: NetworkSettings, advertised: Sequence[Endpoint]) -> str:
    name = config.inter_broker_listener_name
    if name is not None:
        if name.upper() not in {endpoint.name for endpoint in advertised}:
            raise UserError(
                f"inter.broker.listener.name={name}: not among advertised.listeners "
                f"({', '.join(endpoint.name for endpoint in advertised)})"
            )
        return name.upper()
    protocol = config.security_inter_broker_protocol
    for endpoint in advertised:
        if endpoint.name == protocol:
            return endpoint.name
    fitting = [endpoint.name for endpoint in advertised if endpoint.protocol == protocol]
    if not fitting:
        raise UserError(
            f"security.inter.broker.protocol={protocol}: no advertised listener uses it"
        )
    return fitting[0]


def _control_plane(
    config: NetworkSettings, advertised: Sequence[Endpoint], inter_broker: str
) -> str | None:
    name = config.control_plane_listener_name
    if name is None:
        return None
    if name.upper() not in {endpoint.name for endpoint in advertised}:
        raise UserError(f"control.plane.listener.name={name}: not among advertised.listeners")
    if name.upper() == inter_broker:
        raise UserError(
            f"control.plane.listener.name={name}: expected another listener than "
            "inter.broker.listener.name"
        )
    return name.upper()
