"""TLS and SASL of a broker's listeners, kept up to date while it runs.

Owns: the certificates and mechanisms in force for each listener, and the loop that replaces them
when settings, key stores or key sets change. Connections that exist keep what they have. Never
accepts a connection.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import get_native_id
from typing import Final

from ottla.api.login import Login, LoginContext
from ottla.broker.environment import Environment
from ottla.broker.link_security import LinkSecurity, listener_settings, tls_settings
from ottla.config.broker import BrokerConfig
from ottla.config.dynamic import DynamicConfig
from ottla.config.listeners import ENCRYPTED, WITH_LOGIN, Endpoint, Listeners
from ottla.model.clock import MonoMs
from ottla.model.errors import UserError
from ottla.net.connection import Connection
from ottla.net.network import Network
from ottla.net.request_slot import Answer
from ottla.security.sasl.key_sets import KeySet
from ottla.security.sasl.scram import ScramCredentials, nonce
from ottla.security.sasl.server import ListenerSettings, SaslServer
from ottla.security.tls.contexts import ServerTls

log = logging.getLogger(__name__)

ANY_AUDIENCE: Final = (
    "listener %s: sasl.oauthbearer.expected.audience is not set, so a token that was issued for "
    "another service logs in here, too"
)

HANDSHAKE_THREADS: Final = 2
HANDSHAKE_NICENESS: Final = 10
"""Added to the broker's own: handshakes, which anybody can begin, take the CPU time that requests
leave (benchmarks/logins.py)."""
CHECK_S: Final = 10.0
"""How often files are looked at; a change of settings is applied at once."""


class ListenerSecurity:
    def __init__(
        self,
        config: DynamicConfig,
        credentials: ScramCredentials,
        environment: Environment,
        network: Network,
        answer: Answer,
    ) -> None:
        self._config = config
        self._credentials = credentials
        self._environment = environment
        self._network = network
        self._answer = answer
        self._tls: dict[str, ServerTls] = {}
        self._sasl: dict[str, SaslServer] = {}
        self._settings: dict[str, ListenerSettings] = {}  # of the SASL servers in force
        self._keys_read_ms: dict[str, MonoMs] = {}
        self._errors: dict[str, str] = {}
        self.links: LinkSecurity | None = None
        """Of connections to other brokers; refreshed with the listeners."""
        self._links_error: str | None = None
        self._check_now = asyncio.Event()
        config.on_broker(lambda before, now: self._check_now.set())
        config.validators.append(self._validate)

    def tls(self, endpoint: Endpoint) -> ServerTls | None:
        """TLS of a listener; a UserError says why it cannot be served."""
        if endpoint.protocol not in ENCRYPTED:
            return None
        if self._network.tls.executor is None and self._environment.pool is not None:
            self._network.tls.executor = ThreadPoolExecutor(
                HANDSHAKE_THREADS, "ottla-tls", initializer=yield_to_requests
            )
        settings = tls_settings(self._config.current, endpoint)
        try:
            tls = ServerTls(settings, with_login=endpoint.protocol in WITH_LOGIN)
        except UserError as error:
            raise UserError(f"listener {endpoint.name}: {error}") from None
        self._tls[endpoint.name] = tls
        self._network.metrics.registry.gauge(
            "kafka_server_socketservermetrics_certificate_expiry_seconds",
            "When the certificate of a listener expires, in seconds since 1970.",
            lambda: tls.expires_s,
            listener=endpoint.name,
        )
        return tls

    async def login(self, endpoint: Endpoint) -> Callable[[Connection], Login] | None:
        """What logs in the clients of a listener."""
        if endpoint.protocol not in WITH_LOGIN:
            return None
        name = endpoint.name
        await self._put_sasl(name, listener_settings(self._config.current, name))
        context = LoginContext(
            lambda: self._sasl[name],
            self._answer,
            self._environment.clock,
            lambda: self._config.current.connection_failed_authentication_delay_ms,
            lambda outcome: self._count(name, outcome),
            self._network.run_blocking,
        )
        return lambda connection: Login(connection, context)

    async def run(self) -> None:
        """Until cancelled: apply changes of settings, key stores and key sets."""
        while True:
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._check_now.wait()
            except TimeoutError:
                pass
            self._check_now.clear()
            for endpoint in Listeners.of(self._config.current).bound:
                await self._refresh(endpoint)
            if self.links is not None:
                await self._refresh_links(self.links)

    def close(self) -> None:
        executor = self._network.tls.executor
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)

    async def _refresh(self, endpoint: Endpoint) -> None:
        name = endpoint.name
        try:
            if name in self._tls:
                await self._refresh_tls(endpoint, self._tls[name])
            if name in self._sasl:
                settings = listener_settings(self._config.current, name)
                if settings != self._settings[name]:
                    await self._put_sasl(name, settings)
                    log.info("listener %s: SASL settings changed", name)
                await self._load_keys(name)
        except UserError as error:
            if self._errors.get(name) != str(error):
                log.error("listener %s: keeping the security settings in force: %s", name, error)
            self._errors[name] = str(error)
        else:
            self._errors.pop(name, None)

    async def _refresh_tls(self, endpoint: Endpoint, tls: ServerTls) -> None:
        settings = tls_settings(self._config.current, endpoint)
        if await self._network.run_blocking(lambda: tls.is_stale(settings)):
            await self._network.run_blocking(lambda: tls.refresh(settings))
            log.info("listener %s: certificates replaced", endpoint.name)

    async def _refresh_links(self, links: LinkSecurity) -> None:
        config = self._config.current
        try:
            if await self._network.run_blocking(lambda: links.is_stale(config)):
                await self._network.run_blocking(lambda: links.refresh(config))
                log.info("connections to other brokers: certificates replaced")
        except UserError as error:
            if self._links_error != str(error):
                log.error(
                    "connections to other brokers: keeping the certificates in force: %s", error
                )
            self._links_error = str(error)
        else:
            self._links_error = None

    async def _put_sasl(self, name: str, settings: ListenerSettings) -> None:
        """Use other mechanisms from now on, with keys: those in force or, from elsewhere, new ones.

        UserError if these cannot be read.
        """
        server = SaslServer(settings, self._credentials, self._environment.clock, self._nonce)
        before, keys = self._sasl.get(name), server.key_set
        known = None if before is None else before.key_set
        self._keys_read_ms.pop(name, None)
        if keys is not None and known is not None and keys.url == known.url:
            keys.keys = known.keys
        elif keys is not None:
            await self._read_keys(name, keys)
        if server.takes_any_audience and not (before and before.takes_any_audience):
            log.warning(ANY_AUDIENCE, name)
        self._sasl[name] = server
        self._settings[name] = settings

    async def _load_keys(self, name: str) -> None:
        keys = self._sasl[name].key_set
        now_ms = self._environment.clock.mono_ms()
        refresh_ms = self._settings[name].settings.sasl_oauthbearer_jwks_endpoint_refresh_ms
        read_ms = self._keys_read_ms.get(name)
        if keys is not None and (read_ms is None or now_ms - read_ms >= refresh_ms):
            await self._read_keys(name, keys)

    async def _read_keys(self, name: str, keys: KeySet) -> None:
        began_ms = self._environment.clock.mono_ms()
        try:
            await self._network.run_blocking(keys.load)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read the keys of OAUTHBEARER: {error}") from None
        self._keys_read_ms[name] = began_ms

    def _validate(self, changed: BrokerConfig) -> None:
        """UserError if a listener that is served could not be served with these settings."""
        for endpoint in Listeners.of(changed).bound:
            if endpoint.name in self._tls:
                settings = tls_settings(changed, endpoint)
                if self._tls[endpoint.name].is_stale(settings):
                    ServerTls(settings, with_login=endpoint.protocol in WITH_LOGIN)
            if endpoint.name in self._sasl:
                settings_of = listener_settings(changed, endpoint.name)
                SaslServer(settings_of, self._credentials, self._environment.clock, self._nonce)
        self._check_now.set()  # as in Kafka, setting the same values again reads the files again

    def _count(self, name: str, outcome: str) -> None:
        self._network.metrics.authentication_counter(name, outcome).value += 1

    def _nonce(self) -> str:
        return nonce(self._environment.random_bytes)


def yield_to_requests() -> None:
    """Lower the priority of this thread alone, as Linux allows."""
    thread = get_native_id()
    with suppress(OSError):  # not allowed here: as before
        niceness = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, niceness + HANDSHAKE_NICENESS)
