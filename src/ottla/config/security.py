"""Settings of who may do what."""

from typing import Annotated, Final

from ottla.config.settings import Doc, Settings

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""The names by which Kafka's releases know the one that is offered here."""


class SecuritySettings(Settings):
    authorizer_class_name: Annotated[
        str,
        Doc("Kafka's authorizer, by any of its names, has access rules (ACLs) hold; empty: none."),
    ] = ""
    super_users: Annotated[
        str, Doc("Principals whom no rule concerns, such as User:admin;User:ops.")
    ] = ""
    allow_everyone_if_no_acl_found: Annotated[
        bool, Doc("Whether all may use a resource that no access rule speaks of.")
    ] = False

    @property
    def super_user_names(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.super_users.split(";") if name.strip())

    def _access_rules(self) -> str | None:
        name = self.authorizer_class_name
        if name and name not in AUTHORIZERS:
            expected = f"expected nothing, or one of {', '.join(AUTHORIZERS)}"
            return f"authorizer.class.name={name!r}: {expected}"
        for name in self.super_user_names:
            kind, _, rest = name.partition(":")
            if not (kind and rest):
                return f"super.users={name!r}: expected a type and a name, such as User:admin"
        return None
