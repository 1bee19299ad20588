"""TLS and login of this broker's connections to other brokers.

Owns: the certificates and the credentials that the inter-broker listener's settings give. Never
connects: `broker_links.py` does.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.config.broker import BrokerConfig
from ottla.config.listeners import ENCRYPTED, WITH_LOGIN, Endpoint, Listeners
from ottla.config.sasl import SaslClientSettings, SaslSettings
from ottla.config.settings import TypedValue
from ottla.model.clock import Clock
from ottla.net.broker_link import BrokerLink
from ottla.net.outbound_connection import Ask
from ottla.security.sasl.client import ClientLogin
from ottla.security.sasl.login_requests import Requests, log_in
from ottla.security.sasl.scram import nonce
from ottla.security.sasl.server import ListenerSettings
from ottla.security.tls.contexts import ClientTls


class LinkSecurity:
    """For the protocol of the inter-broker listener."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, random_bytes: Callable[[int], bytes]
    ) -> None:
        """`random_bytes`: for the nonces of SCRAM."""
        endpoint = inter_broker_endpoint(config)
        self.tls: ClientTls | None = None
        self._login: ClientLogin | None = None
        if endpoint.protocol in ENCRYPTED:
            self.tls = ClientTls(tls_settings(config, endpoint))
        if endpoint.protocol in WITH_LOGIN:
            listener = listener_settings(config, endpoint.name)
            self._login = _client_login(listener, clock, random_bytes)

    async def login(self, link: BrokerLink, ask: Ask) -> int:
        """How long the login lasts, in ms; 0: for ever. AuthenticationFailed."""
        if self._login is None:
            return 0
        requests = Requests(
            ask,
            link.next_id,
            link.client_id,
            link.versions.newest_common,
            link.address,
            link.host,
        )
        return await log_in(requests, self._login)

    def is_stale(self, config: BrokerConfig) -> bool:
        settings = tls_settings(config, inter_broker_endpoint(config))
        return self.tls is not None and self.tls.is_stale(settings)

    def refresh(self, config: BrokerConfig) -> None:
        if self.tls is not None:
            self.tls.refresh(tls_settings(config, inter_broker_endpoint(config)))


def inter_broker_endpoint(config: BrokerConfig) -> Endpoint:
    listeners = Listeners.of(config)
    return next(each for each in listeners.advertised if each.name == listeners.inter_broker)


def _client_login(
    listener: ListenerSettings, clock: Clock, random_bytes: Callable[[int], bytes]
) -> ClientLogin:
    mechanism = listener.settings.sasl_mechanism_inter_broker_protocol
    of_mechanism = listener.of_mechanism(mechanism)
    own: dict[str, TypedValue] = {
        shared.attribute: of_mechanism.value(name) for name, shared in SaslSettings.SETTINGS.items()
    }
    settings = SaslClientSettings(**{**own, "sasl_mechanism": mechanism})
    modules = listener.login_modules(mechanism)
    return ClientLogin(settings, clock, lambda: nonce(random_bytes), modules=modules)


def listener_settings(config: BrokerConfig, name: str) -> ListenerSettings:
    return ListenerSettings.of(name, config, config.of_listeners.security.get(name, {}))


def tls_settings(config: BrokerConfig, endpoint: Endpoint) -> BrokerConfig:
    """As in Kafka, `ssl.client.auth` concerns a SASL listener only if it is set for it."""
    own = config.of_listeners.security.get(endpoint.name, {})
    settings = config.changed(**BrokerConfig.read(own))
    if endpoint.protocol in WITH_LOGIN and "ssl.client.auth" not in own:
        settings = settings.changed(ssl_client_auth="none")
    return settings
