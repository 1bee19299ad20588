"""The login of a client: mechanism and credentials from its settings.

Owns: where user, password and token come from. Never connects to a broker.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from ottla.config.sasl import SaslClientSettings
from ottla.model.clock import Clock
from ottla.model.errors import AuthenticationFailed, UserError
from ottla.security.sasl import jaas
from ottla.security.sasl.exchange import ClientExchange
from ottla.security.sasl.kerberos import KerberosClient, KerberosModule, check_installed
from ottla.security.sasl.key_sets import check_address, read_address
from ottla.security.sasl.oauthbearer import BearerClient
from ottla.security.sasl.plain import PlainClient
from ottla.security.sasl.scram import NONCE_BYTES, ScramClient
from ottla.security.sasl.tokens import unsecured_token

ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"


class UserPassword(NamedTuple):
    user: str
    password: str

    def __repr__(self) -> str:
        return f"UserPassword({self.user!r}, [hidden])"


class ClientLogin:
    """Starts an exchange for each new connection."""

    def __init__(
        self,
        settings: SaslClientSettings,
        clock: Clock,
        nonce: Callable[[], str] = lambda: secrets.token_urlsafe(NONCE_BYTES),
        *,
        modules: Sequence[jaas.Entry] | None = None,
    ) -> None:
        """`modules`: instead of those of `sasl.jaas.config` or the JAAS file."""
        self.mechanism = settings.sasl_mechanism
        self._settings = settings
        self._clock = clock
        self._nonce = nonce
        entries = _login_modules(settings) if modules is None else modules
        entry = jaas.find(entries, self.mechanism)
        if entries and entry is None:
            raise UserError(
                f"sasl.jaas.config: the login module is for {entries[0].mechanism}, but "
                f"sasl.mechanism is {self.mechanism}"
            )
        self._options = {} if entry is None else dict(entry.options)
        if self.mechanism == "OAUTHBEARER":
            self._token = self._token_source()
        elif self.mechanism == "GSSAPI":
            self._kerberos = KerberosModule.of(self._options, settings.sasl_kerberos_service_name)
            check_installed()
        else:
            self._user = self._user_password()

    def exchange(self, host: str) -> ClientExchange:
        """A new login to the broker on this host."""
        if self.mechanism == "OAUTHBEARER":
            return BearerClient(self._token)
        if self.mechanism == "GSSAPI":
            return KerberosClient(self._kerberos, host)
        user, password = self._user
        if self.mechanism == "PLAIN":
            return PlainClient(user, password)
        is_token = self._options.get("tokenauth", "").lower() == "true"
        return ScramClient(
            self.mechanism, user, password, self._nonce(), _on_thread, is_token=is_token
        )

    def _user_password(self) -> UserPassword:
        settings = self._settings
        user = settings.sasl_username or self._options.get("username")
        password = settings.sasl_password or self._options.get("password")
        if user is None or password is None:
            raise UserError(
                f"sasl.mechanism={self.mechanism} needs a user and a password: set "
                "sasl.jaas.config, or sasl.username and sasl.password"
            )
        return UserPassword(user, password)

    def _token_source(self) -> Callable[[], Awaitable[str]]:
        settings, options = self._settings, self._options
        if settings.sasl_oauthbearer_token is not None:
            token = settings.sasl_oauthbearer_token

            async def configured_token() -> str:
                return token

            return configured_token
        url = settings.sasl_oauthbearer_token_endpoint_url
        if url is not None:
            check_address(ENDPOINT, url, settings.sasl_oauthbearer_allowed_urls)
            request = _token_request(settings, options)
            return lambda: _fetched_token(url, *request)
        user = options.get("unsecuredLoginStringClaim_sub")
        if user is None:
            raise UserError(
                f"sasl.mechanism=OAUTHBEARER needs a token: set {ENDPOINT} or "
                "sasl.oauthbearer.token"
            )

        async def new_unsecured_token() -> str:
            return unsecured_token(user, self._clock.wall_ms())

        return new_unsecured_token


def _login_modules(settings: SaslClientSettings) -> Sequence[jaas.Entry]:
    if settings.sasl_jaas_config is not None:
        return jaas.parse_line(settings.sasl_jaas_config)
    path = settings.java_security_auth_login_config
    return () if path is None else jaas.read_section(path, "KafkaClient")


def _token_request(
    settings: SaslClientSettings, options: Mapping[str, str]
) -> tuple[dict[str, str], bytes]:
    """Headers and body for a token by the client's credentials (RFC 6749, 4.4).

    As in Kafka, the settings count more than the options of the JAAS line.
    """
    client = settings.sasl_oauthbearer_client_credentials_client_id or options.get("clientId", "")
    secret = settings.sasl_oauthbearer_client_credentials_client_secret
    scope = settings.sasl_oauthbearer_scope or options.get("scope")
    pair = f"{client}:{secret or options.get('clientSecret', '')}"
    fields = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    basic = base64.b64encode(pair.encode()).decode()
    headers = {"Accept": "application/json", "Authorization": f"Basic {basic}"}
    return headers, urlencode(fields).encode()


async def _fetched_token(url: str, headers: dict[str, str], body: bytes) -> str:
    """From an https address, or the content of a file."""
    data = await asyncio.to_thread(read_address, url, body=body, headers=headers)
    if not url.startswith("https:"):
        return data.decode("ascii", "replace").strip()
    try:
        token = json.loads(data)["access_token"]
    except (ValueError, KeyError, TypeError):
        token = None
    if not isinstance(token, str):
        raise AuthenticationFailed(f"{ENDPOINT}={url}: the answer has no access_token")
    return token


async def _on_thread(work: Callable[[], bytes]) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(None, work)
