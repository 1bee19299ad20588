"""The mechanisms of one listener, from its settings.

Owns: which mechanisms are offered, and a new exchange for each login. Never sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.config.sasl import MECHANISMS
from ottla.config.security import SecuritySettings
from ottla.model.clock import Clock
from ottla.model.errors import UserError
from ottla.security.sasl import jaas
from ottla.security.sasl.exchange import ServerExchange
from ottla.security.sasl.kerberos import Acceptor, KerberosModule, KerberosServer
from ottla.security.sasl.key_sets import KeySet, check_address
from ottla.security.sasl.oauthbearer import BearerServer
from ottla.security.sasl.plain import PlainServer
from ottla.security.sasl.scram import HASHES, ScramCredentials, ScramServer
from ottla.security.sasl.tokens import TokenChecker, TokenRules

JWKS: Final = "sasl.oauthbearer.jwks.endpoint.url"
JAAS: Final = "sasl.jaas.config"


class ListenerSettings(NamedTuple):
    """The settings of one listener: `settings` with its own applied, and those of mechanisms."""

    name: str
    settings: SecuritySettings
    overrides: Mapping[str, str]

    @classmethod
    def of(
        cls, name: str, settings: SecuritySettings, overrides: Mapping[str, str]
    ) -> ListenerSettings:
        own = SecuritySettings.read(overrides)
        return cls(name, settings.changed(**own), overrides)

    def of_mechanism(self, mechanism: str) -> SecuritySettings:
        prefix = f"{mechanism.lower()}."
        texts = {
            key.removeprefix(prefix): text
            for key, text in self.overrides.items()
            if key.startswith(prefix)
        }
        return self.settings.changed(**SecuritySettings.read(texts))

    def login_modules(self, mechanism: str) -> Sequence[jaas.Entry]:
        """The setting of the listener and mechanism, else the sections of the JAAS file, as in
        Kafka; only without either, a line that is for neither, which Kafka ignores."""
        path = self.settings.java_security_auth_login_config
        text = self.of_mechanism(mechanism).sasl_jaas_config
        if text is not None and (f"{mechanism.lower()}.{JAAS}" in self.overrides or path is None):
            name = f"listener.name.{self.name.lower()}.{mechanism.lower()}.{JAAS}"
            return jaas.parse_line(text, name)
        if path is None:
            return ()
        return jaas.read_section(path, f"{self.name.lower()}.KafkaServer", "KafkaServer")


class SaslServer:
    """`nonce` makes the server's part of a SCRAM nonce."""

    def __init__(
        self,
        listener: ListenerSettings,
        credentials: ScramCredentials,
        clock: Clock,
        nonce: Callable[[], str],
    ) -> None:
        self._listener = listener
        self._credentials = credentials
        self._nonce = nonce
        self._checker: TokenChecker | None = None
        self._passwords: Mapping[str, str] = {}
        self.key_set: KeySet | None = None
        self.takes_any_audience = False
        self._acceptor: Acceptor | None = None
        self.mechanisms = listener.settings.sasl_enabled_mechanisms
        if not self.mechanisms:
            raise UserError(
                f"sasl.enabled.mechanisms is empty: listener {listener.name} needs one of "
                f"{', '.join(MECHANISMS)}"
            )
        if "PLAIN" in self.mechanisms:
            self._passwords = self._users()
        if "OAUTHBEARER" in self.mechanisms:
            self._checker = self._token_checker(clock)
        if "GSSAPI" in self.mechanisms:
            self._acceptor = self._kerberos_acceptor()

    def exchange(self, mechanism: str) -> ServerExchange:
        """A new login by one of `mechanisms`."""
        if mechanism in HASHES:
            users, unknown = self._credentials.of(mechanism), self._credentials.unknown(mechanism)
            return ScramServer(mechanism, users, self._nonce(), unknown, self._credentials.tokens)
        if mechanism == "PLAIN":
            return PlainServer(self._passwords)
        if mechanism == "GSSAPI":
            assert self._acceptor is not None
            return KerberosServer(self._acceptor)
        assert self._checker is not None
        return BearerServer(self._checker.check)

    def max_reauth_ms(self, mechanism: str) -> int:
        return self._listener.of_mechanism(mechanism).connections_max_reauth_ms

    def _users(self) -> Mapping[str, str]:
        entry = jaas.find(self._listener.login_modules("PLAIN"), "PLAIN")
        if entry is None:
            name = f"listener.name.{self._listener.name.lower()}.plain.{JAAS}"
            raise UserError(f"{name}: PLAIN needs the users: PlainLoginModule required user_…")
        return entry.users

    def _kerberos_acceptor(self) -> Acceptor:
        settings = self._listener.of_mechanism("GSSAPI")
        entry = jaas.find(self._listener.login_modules("GSSAPI"), "GSSAPI")
        try:
            module = KerberosModule.of(
                {} if entry is None else entry.options, settings.sasl_kerberos_service_name
            )
            return Acceptor(module, settings.sasl_kerberos_principal_to_local_rules)
        except UserError as error:
            raise UserError(f"listener {self._listener.name}: {error}") from None

    def _token_checker(self, clock: Clock) -> TokenChecker:
        settings = self._listener.of_mechanism("OAUTHBEARER")
        url = settings.sasl_oauthbearer_jwks_endpoint_url
        if url is not None:
            check_address(JWKS, url, settings.sasl_oauthbearer_allowed_urls)
            self.key_set = KeySet(url)
        if not settings.sasl_oauthbearer_unsecured_enable:
            self.takes_any_audience = not settings.sasl_oauthbearer_expected_audience
        rules = TokenRules(
            audiences=settings.sasl_oauthbearer_expected_audience,
            issuer=settings.sasl_oauthbearer_expected_issuer,
            clock_skew_s=settings.sasl_oauthbearer_clock_skew_seconds,
            subject_claim=settings.sasl_oauthbearer_sub_claim_name,
            scope_claim=settings.sasl_oauthbearer_scope_claim_name,
            unsecured=settings.sasl_oauthbearer_unsecured_enable,
        )
        return TokenChecker(rules, self.key_set, clock)
