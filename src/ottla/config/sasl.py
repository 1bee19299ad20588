"""Settings of SASL, for brokers and for clients.

Owns: the names, types and defaults of `sasl.*`. Never parses a JAAS line or loads a class that a
setting names: `security/sasl` recognises Kafka's own login modules and refuses all others.
"""

from typing import Annotated, Final

from ottla.config.settings import (
    AtLeast,
    Between,
    Doc,
    Dynamic,
    Long,
    NoEffect,
    OneOf,
    Settings,
    Type,
    Words,
)

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
HANDLERS: Final = (
    "",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_TICKETS: Final = NoEffect("tickets are renewed from the key table by the Kerberos library")
_HANDLER: Final = NoEffect("no class is loaded by name; the login module decides")


class SaslSettings(Settings):
    """Of both sides."""

    sasl_jaas_config: Annotated[
        str | None,
        Type.PASSWORD,
        Dynamic("broker"),
        Doc("A login module of Kafka and its options, as one JAAS line."),
    ] = None
    java_security_auth_login_config: Annotated[
        str | None,
        Doc(
            "Ours, Java's system property. JAAS file: KafkaServer, KafkaClient, Client (ZooKeeper)."
        ),
    ] = None
    sasl_login_callback_handler_class: Annotated[
        str | None, Type.CLASS, OneOf(HANDLERS), _HANDLER
    ] = None
    sasl_kerberos_service_name: Annotated[
        str | None, Dynamic("broker"), Doc("Name of the brokers' service in Kerberos.")
    ] = None
    sasl_kerberos_kinit_cmd: Annotated[str, Dynamic("broker"), _TICKETS] = "/usr/bin/kinit"
    sasl_kerberos_ticket_renew_window_factor: Annotated[
        float, AtLeast(0), Dynamic("broker"), _TICKETS
    ] = 0.8
    sasl_kerberos_ticket_renew_jitter: Annotated[float, AtLeast(0), Dynamic("broker"), _TICKETS] = (
        0.05
    )
    sasl_kerberos_min_time_before_relogin: Annotated[
        Long, AtLeast(0), Dynamic("broker"), _TICKETS
    ] = 60_000
    sasl_oauthbearer_scope_claim_name: Annotated[
        str, Doc("Claim of a token that lists its scopes.")
    ] = "scope"
    sasl_oauthbearer_sub_claim_name: Annotated[
        str, Doc("Claim of a token that names its user.")
    ] = "sub"
    sasl_oauthbearer_token_endpoint_url: Annotated[
        str | None, Doc("Where a client gets its token: an https address, or a file.")
    ] = None
    sasl_oauthbearer_client_credentials_client_id: Annotated[
        str | None, Doc("Who asks the token endpoint; the option clientId of a JAAS line, too.")
    ] = None
    sasl_oauthbearer_client_credentials_client_secret: Annotated[
        str | None,
        Type.PASSWORD,
        Doc("Its password; the option clientSecret of a JAAS line, too."),
    ] = None
    sasl_oauthbearer_scope: Annotated[
        str | None,
        Doc("Scope that the token endpoint is asked for; the option scope of a JAAS line, too."),
    ] = None
    sasl_oauthbearer_allowed_urls: Annotated[
        Words,
        Doc("Ours. The only addresses that keys and tokens may be read from, written out in full."),
    ] = ()


class SaslServerSettings(SaslSettings):
    sasl_enabled_mechanisms: Annotated[
        Words,
        OneOf(MECHANISMS),
        Dynamic("broker"),
        Doc("Mechanisms that clients may log in with."),
    ] = ("GSSAPI",)
    sasl_mechanism_inter_broker_protocol: Annotated[
        str,
        OneOf(MECHANISMS),
        Dynamic("broker"),
        Doc("Mechanism that this broker logs in to other brokers with."),
    ] = "GSSAPI"
    sasl_kerberos_principal_to_local_rules: Annotated[
        Words,
        Dynamic("broker"),
        Doc("How the name in a Kerberos ticket becomes a user; the first rule for it counts."),
    ] = ("DEFAULT",)
    sasl_server_max_receive_size: Annotated[
        int, Between(1, 524_288), Doc("Largest request of a client that is not logged in.")
    ] = 524_288
    sasl_server_callback_handler_class: Annotated[
        str | None, Type.CLASS, OneOf(HANDLERS), _HANDLER
    ] = None
    connections_max_reauth_ms: Annotated[
        Long, AtLeast(0), Doc("A client must log in again after this long; 0: never.")
    ] = 0
    sasl_oauthbearer_jwks_endpoint_url: Annotated[
        str | None, Doc("Keys that tokens are signed with: an https address, or a file.")
    ] = None
    sasl_oauthbearer_jwks_endpoint_refresh_ms: Annotated[
        Long, AtLeast(1), Doc("How often the keys are read again.")
    ] = 3_600_000
    sasl_oauthbearer_expected_audience: Annotated[
        Words, Doc("A token must be for one of these; any when empty.")
    ] = ()
    sasl_oauthbearer_expected_issuer: Annotated[
        str | None, Doc("A token must be issued by this; anybody when not set.")
    ] = None
    sasl_oauthbearer_clock_skew_seconds: Annotated[
        int, AtLeast(0), Doc("How far the clock of a token's issuer may differ.")
    ] = 30
    sasl_oauthbearer_unsecured_enable: Annotated[
        bool, Doc("Ours, for tests. Accept tokens without a signature: anybody may be anybody.")
    ] = False


class SaslClientSettings(SaslSettings):
    sasl_mechanism: Annotated[
        str, OneOf(MECHANISMS), Doc("Mechanism to log in to brokers with.")
    ] = "GSSAPI"
    sasl_username: Annotated[
        str | None, Doc("Ours. User of PLAIN and SCRAM, instead of a JAAS line.")
    ] = None
    sasl_password: Annotated[
        str | None, Type.PASSWORD, Doc("Ours. Password of PLAIN and SCRAM, instead of a JAAS line.")
    ] = None
    sasl_oauthbearer_token: Annotated[
        str | None, Type.PASSWORD, Doc("Ours. The token of OAUTHBEARER itself.")
    ] = None
    sasl_client_callback_handler_class: Annotated[
        str | None, Type.CLASS, OneOf(HANDLERS), _HANDLER
    ] = None
