"""Settings of authentication and authorization on the broker."""

from typing import Annotated, Final

from ottla.config.sasl import SaslServerSettings
from ottla.config.settings import AtLeast, Doc, Dynamic, Long, OneOf, Settings, Type
from ottla.config.tls import TlsSettings

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""The names of the supported authorizer in Kafka's releases."""


class SecuritySettings(TlsSettings, SaslServerSettings, Settings):
    ssl_client_auth: Annotated[
        str,
        OneOf(("none", "requested", "required")),
        Dynamic("broker"),
        Doc("Whether clients of SSL listeners must show a certificate."),
    ] = "none"
    ssl_principal_mapping_rules: Annotated[
        str,
        Doc("How the name in a client's certificate becomes a principal; the first match counts."),
    ] = "DEFAULT"
    quota_window_num: Annotated[
        int, AtLeast(1), Doc("Samples over which the usage of client quotas is measured.")
    ] = 11
    quota_window_size_seconds: Annotated[
        int, AtLeast(1), Doc("Time span of each sample of client quotas.")
    ] = 1
    controller_quota_window_num: Annotated[
        int, AtLeast(1), Doc("Samples of the quota on changes of topics.")
    ] = 11
    controller_quota_window_size_seconds: Annotated[
        int, AtLeast(1), Doc("Time span of each sample of the quota on changes of topics.")
    ] = 1
    delegation_token_secret_key: Annotated[
        str | None,
        Type.PASSWORD,
        Doc("Makes the passwords of delegation tokens, the same on all brokers; unset: no tokens."),
    ] = None
    delegation_token_master_key: Annotated[
        str | None, Type.PASSWORD, Doc("The older name of delegation.token.secret.key.")
    ] = None
    delegation_token_max_lifetime_ms: Annotated[
        Long, AtLeast(1), Doc("A delegation token ends after this long, however often renewed.")
    ] = 604_800_000
    delegation_token_expiry_time_ms: Annotated[
        Long, AtLeast(1), Doc("A delegation token ends after this long unless it is renewed.")
    ] = 86_400_000
    delegation_token_expiry_check_interval_ms: Annotated[
        Long, AtLeast(1), Doc("How often the controller deletes expired delegation tokens.")
    ] = 3_600_000
    authorizer_class_name: Annotated[
        str,
        Doc("Kafka's authorizer, by any of its names, enables ACLs; empty disables them."),
    ] = ""
    super_users: Annotated[
        str, Doc("Principals that may do everything, such as User:admin;User:ops.")
    ] = ""
    allow_everyone_if_no_acl_found: Annotated[
        bool, Doc("Allow everyone to use a resource that has no ACL.")
    ] = False

    @property
    def token_secret(self) -> str:
        return self.delegation_token_secret_key or self.delegation_token_master_key or ""

    @property
    def super_user_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.super_users.split(";") if name.strip())

    def _access_rules(self) -> str | None:
        name = self.authorizer_class_name
        if name and name not in AUTHORIZERS:
            expected = f"expected empty, or one of {', '.join(AUTHORIZERS)}"
            return f"authorizer.class.name={name!r}: {expected}"
        for name in self.super_user_names:
            kind, _, principal_name = name.partition(":")
            if not (kind and principal_name):
                return f"super.users={name!r}: expected a type and a name, such as User:admin"
        return None
