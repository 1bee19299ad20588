"""GSSAPI (RFC 4752): logins by Kerberos tickets, both sides, without a security layer.

Owns: the messages, the keys of a broker, the tickets of a client, and what Kerberos errors mean.
Never encrypts the connection: SASL_SSL does. Every call into Kerberos may read files or ask the
KDC, so all of this runs on threads.

Needs the package gssapi (the extra `kerberos`), imported when a login module names Kerberos.
Realms and KDCs are those of /etc/krb5.conf, or of the file that KRB5_CONFIG names.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.model.errors import AuthenticationFailed, Disconnect, UserError
from ottla.security.sasl.exchange import SENTENCE, LoginFailed, Step
from ottla.security.sasl.kerberos_names import NoRule, UserNames

GssObject: TypeAlias = Any
"""The package gssapi, or what it returns: it is optional, and has no types."""

MECHANISM: Final = "GSSAPI"
SERVICE: Final = "sasl.kerberos.service.name"
NO_LAYER: Final = b"\x01\x00\x00\x00"
"""The only security layer that Kafka has: none."""
_CODES: Final = 2_529_638_912
"""What is added to a Kerberos error (RFC 4120, 7.5.9) to make a minor status of it."""
UNKNOWN_CLIENT: Final = 6
UNKNOWN_SERVER: Final = 7
CLOCK_SKEW: Final = 37
KDC_UNREACHABLE: Final = 156
RETRIABLE: Final = frozenset({21, 33, 34, KDC_UNREACHABLE})
"""Not valid yet, a replay that may be none, no KDC: another attempt may succeed."""

_tickets = threading.Lock()
"""Tickets are fetched by one thread at a time: their cache is cleared while it is filled."""


class KerberosModule(NamedTuple):
    """What a login module says: the brokers' service, who this side is, where its keys are."""

    service: str
    principal: str | None
    keytab: str | None
    """Where keys are, with its type; None: tickets are taken from a cache."""
    ticket_cache: str | None
    """None: the default cache of this process."""

    @classmethod
    def of(cls, options: Mapping[str, str], service: str | None) -> KerberosModule:
        """From the options of Krb5LoginModule and `sasl.kerberos.service.name`."""
        in_jaas = options.get("serviceName")
        if service and in_jaas and service != in_jaas:
            raise UserError(
                f"{SERVICE}={service}: the JAAS configuration has serviceName={in_jaas}; "
                "set one of them, or both to the same"
            )
        if not (service or in_jaas):
            raise UserError(
                f"mechanism GSSAPI, Kafka's default, needs {SERVICE}, usually kafka; if another "
                "is meant, name it in sasl.mechanism (clients) or sasl.enabled.mechanisms (brokers)"
            )
        keytab = options.get("keyTab", "") if _is_true(options, "useKeyTab") else None
        cache = options.get("ticketCache") if _is_true(options, "useTicketCache") else None
        return cls(service or in_jaas or "", options.get("principal"), keytab, cache)

    def key_store(self, name: str) -> dict[str, str]:
        """Where the keys are, as GSSAPI wants it; the default key table has no name."""
        return {name: _with_type(self.keytab)} if self.keytab else {}


class Acceptor:
    """The keys that clients' tickets are for, and the rules that make users of their names."""

    def __init__(self, module: KerberosModule, rules: tuple[str, ...]) -> None:
        self._module = module
        gssapi = _gssapi()
        if module.keytab is None or module.principal is None:
            raise UserError(
                "GSSAPI needs the broker's keys: com.sun.security.auth.module.Krb5LoginModule "
                'required useKeyTab=true storeKey=true keyTab="…" principal="…"'
            )
        _check_readable(module.keytab)
        default = gssapi.Name("x", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
        self.users = UserNames(rules, str(default).rpartition("@")[2])
        self.credentials()

    def credentials(self) -> GssObject:
        """Read again for each login: keys may be added to the table."""
        return _keys(self._module)


class Phase(Enum):
    CONTEXT = auto()  # tokens of Kerberos
    LAYER = auto()  # the offer of security layers
    CHOICE = auto()  # the client's choice among them
    DONE = auto()


class KerberosServer:
    """One login. Kafka ignores the authorization id, and so does this."""

    blocks = True

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._phase = Phase.CONTEXT
        self._context: GssObject = None

    def evaluate(self, token: bytes) -> Step:
        gssapi = _gssapi()
        try:
            if self._phase is Phase.CONTEXT:
                return self._on_context_token(token)
            if self._phase is Phase.LAYER:
                self._phase = Phase.CHOICE
                return Step(self._context.wrap(NO_LAYER, False).message)
            return self._on_choice(token)
        except gssapi.exceptions.GSSError as error:
            if _code(error) in RETRIABLE:
                raise Disconnect(f"GSSAPI: {_text(error)}") from None
            raise LoginFailed(SENTENCE + MECHANISM, _text(error)) from None
        except UserError as error:  # the keys have gone since the start
            raise LoginFailed(SENTENCE + MECHANISM, str(error)) from None

    def _on_context_token(self, token: bytes) -> Step:
        if self._context is None:
            credentials = self._acceptor.credentials()
            self._context = _gssapi().SecurityContext(creds=credentials, usage="accept")
        answer = self._context.step(token)
        if not self._context.complete:
            return Step(answer or b"")
        if answer:
            self._phase = Phase.LAYER
            return Step(answer)
        self._phase = Phase.CHOICE
        return Step(self._context.wrap(NO_LAYER, False).message)

    def _on_choice(self, token: bytes) -> Step:
        principal = str(self._context.initiator_name)
        choice = self._context.unwrap(token).message
        if len(choice) < len(NO_LAYER) or choice[0] != NO_LAYER[0]:
            raise LoginFailed(SENTENCE + MECHANISM, "unknown security layer", user=principal)
        try:
            user = self._acceptor.users.user(principal)
        except NoRule as error:
            raise LoginFailed(SENTENCE + MECHANISM, str(error), user=principal) from None
        self._phase = Phase.DONE
        return Step(b"", user)


class KerberosClient:
    """One login to the broker on `host`."""

    def __init__(self, module: KerberosModule, host: str) -> None:
        self._module = module
        self._host = host
        self._phase = Phase.CONTEXT
        self._context: GssObject = None

    async def first(self) -> bytes:
        return await asyncio.to_thread(self._begin)

    async def evaluate(self, challenge: bytes) -> bytes | None:
        if self._phase is Phase.DONE:
            return None
        return await asyncio.to_thread(self._next, challenge)

    def _begin(self) -> bytes:
        gssapi = _gssapi()
        target = gssapi.Name(
            f"{self._module.service}@{self._host}", gssapi.NameType.hostbased_service
        )
        flags = gssapi.RequirementFlag
        with _tickets:
            credentials = self._credentials()
            self._context = gssapi.SecurityContext(
                name=target, creds=credentials, usage="initiate", mech=gssapi.MechType.kerberos,
                flags=flags.mutual_authentication | flags.integrity,
            )  # fmt: skip
            try:
                return bytes(self._context.step() or b"")
            except gssapi.exceptions.GSSError as error:
                raise self._failure(error) from None

    def _next(self, challenge: bytes) -> bytes:
        gssapi = _gssapi()
        try:
            if not self._context.complete:
                return bytes(self._context.step(challenge) or b"")
            offer = self._context.unwrap(challenge).message
            if len(offer) != len(NO_LAYER) or not offer[0] & NO_LAYER[0]:
                raise AuthenticationFailed(
                    "GSSAPI: the broker requires a security layer, which is not supported; use TLS"
                )
            self._phase = Phase.DONE
            return bytes(self._context.wrap(NO_LAYER, False).message)
        except gssapi.exceptions.GSSError as error:
            raise self._failure(error) from None

    def _credentials(self) -> GssObject:
        gssapi, module = _gssapi(), self._module
        name = None
        if module.principal is not None:
            name = gssapi.Name(module.principal, gssapi.NameType.kerberos_principal)
        try:
            return gssapi.Credentials(
                name=name, usage="initiate", store=_ticket_store(module),
                mechs=[gssapi.MechType.kerberos],
            )  # fmt: skip
        except gssapi.exceptions.GSSError as error:
            raise self._no_ticket(error) from None

    def _no_ticket(self, error: GssObject) -> Exception:
        module = self._module
        who = module.principal or "this user"
        if module.keytab is None:
            return AuthenticationFailed(
                f"GSSAPI: no Kerberos ticket of {who}: {_text(error)}; run kinit, or set useKeyTab "
                "and keyTab in sasl.jaas.config"
            )
        if _code(error) in RETRIABLE:
            return ConnectionError(f"GSSAPI: cannot get a ticket for {who}: {_text(error)}")
        reason = _text(error)
        try:  # it may be about the cache, which is empty because the keys cannot be used
            _check_readable(module.keytab)
            _keys(module)
        except UserError as cause:
            reason = str(cause)
        return AuthenticationFailed(
            f"GSSAPI: cannot get a ticket for {who} with the keys in "
            f"{module.keytab or 'the default key table'}: {reason}"
        )

    def _failure(self, error: GssObject) -> Exception:
        code, service = _code(error), f"{self._module.service}/{self._host}"
        if code in RETRIABLE:
            return ConnectionError(f"GSSAPI: {_text(error)}")
        if code == UNKNOWN_SERVER:
            return AuthenticationFailed(
                f"GSSAPI: the KDC does not know {service}: check {SERVICE} and the host name in "
                "the broker's advertised.listeners"
            )
        if code == CLOCK_SKEW:
            return AuthenticationFailed(
                f"GSSAPI: the clocks of this machine and of {service} differ too much"
            )
        return AuthenticationFailed(f"GSSAPI: {service}: {_text(error)}")


def _keys(module: KerberosModule) -> GssObject:
    """The keys of a principal in a key table, or a UserError."""
    gssapi = _gssapi()
    name = None
    if module.principal not in (None, "*"):
        name = gssapi.Name(module.principal, gssapi.NameType.kerberos_principal)
    try:
        return gssapi.Credentials(
            name=name, usage="accept", store=module.key_store("keytab") or None,
            mechs=[gssapi.MechType.kerberos],
        )  # fmt: skip
    except gssapi.exceptions.GSSError as error:
        raise UserError(f"keyTab={module.keytab}: {_text(error)}") from None


def _ticket_store(module: KerberosModule) -> dict[str, str] | None:
    """Tickets got by a key are kept in memory, and got again before they expire."""
    if module.keytab is None:
        return {"ccache": _with_type(module.ticket_cache)} if module.ticket_cache else None
    key = f"{module.principal}\0{module.keytab}".encode()
    cache = f"MEMORY:ottla-{hashlib.sha256(key).hexdigest()[:16]}"
    return {"ccache": cache, **module.key_store("client_keytab")}


def _with_type(location: str) -> str:
    return location if ":" in location else f"FILE:{location}"


def _check_readable(keytab: str) -> None:
    kind, _, path = _with_type(keytab or "FILE:").partition(":")
    if kind == "FILE" and path:
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise UserError(f"keyTab={path}: {error.strerror}") from None


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _code(error: GssObject) -> int:
    """The Kerberos error of a failed call; another number if it is none."""
    return int(error.min_code) - _CODES


def _text(error: GssObject) -> str:
    """What Kerberos says, without the numbers."""
    parts = [
        str(message)
        for status in ((error.min_code, False), (error.maj_code, True))
        if status[0]
        for message in error.get_all_statuses(*status)
    ]
    known = [part for part in parts if part != "Unknown error"]
    return known[0] if known else "unknown error of Kerberos"


def check_installed() -> None:
    """UserError where the package gssapi is missing."""
    _gssapi()


def _gssapi() -> GssObject:
    try:
        import gssapi
    except ImportError:
        raise UserError(
            "GSSAPI needs the package gssapi, which is compiled against Kerberos: install gcc and "
            "libkrb5-dev (Debian), then pip install 'ottla[kerberos]'"
        ) from None
    return gssapi
