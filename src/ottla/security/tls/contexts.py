"""`ssl.SSLContext`s for brokers and clients, replaced when their files or settings change.

Owns: the context that new connections use. Connections that exist keep theirs. Never reads a file
on the event loop after the start: `refresh` is for a thread.

Keys reach OpenSSL through a file in memory: Python's `ssl` reads keys from paths only, and a key
that came out of a store must not be written to a disk.
"""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from ottla.config.security import SecuritySettings
from ottla.config.tls import TlsSettings
from ottla.model.errors import Disconnect, UserError
from ottla.security.tls.ciphers import CipherSuites, parse_suites
from ottla.security.tls.der import BadDer
from ottla.security.tls.names import Rule, expiry_of, parse_rules, principal_name, subject_of
from ottla.security.tls.stores import KeyMaterial, key_material, trusted_certificates

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


class FileState(NamedTuple):
    """What changes when a file is replaced or written."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, location: str | None) -> FileState | None:
        try:
            state = None if location is None else Path(location).stat()
        except OSError:
            return None
        return None if state is None else cls(state.st_ino, state.st_size, state.st_mtime_ns)


class ServerTls:
    """TLS of one listener: sessions for accepted connections, principals of their clients."""

    def __init__(self, settings: SecuritySettings, *, with_login: bool) -> None:
        """`with_login`: clients log in by SASL, a certificate does not say who they are."""
        self._with_login = with_login
        self._settings = settings
        self._files = _files(settings)
        self.expires_s: int
        """When the certificate expires, in seconds since 1970."""
        self._context, self._suites, self._rules, self.expires_s = _load(settings)

    def session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        return self._context.wrap_bio(incoming, outgoing, server_side=True)

    def principal(self, session: ssl.SSLObject) -> str | None:
        """User:<name> by the certificate; None without one, or where clients log in."""
        _check_suite(session, self._suites)
        certificate = session.getpeercert(binary_form=True)
        if certificate is None or self._with_login:
            return None
        try:
            subject = subject_of(certificate)
        except (BadDer, ValueError) as error:
            raise Disconnect(f"cannot read the client's certificate: {error}") from None
        name = principal_name(self._rules, subject)
        if name is None:
            raise Disconnect(f"no rule of ssl.principal.mapping.rules matches {subject}")
        return f"User:{name}"

    def is_stale(self, settings: SecuritySettings) -> bool:
        """Whether these settings, or the files they name, differ from what is in force."""
        return settings != self._settings or _files(settings) != self._files

    def refresh(self, settings: SecuritySettings) -> None:
        """Use these settings and files for new connections; a UserError leaves all as it was."""
        files = _files(settings)
        self._context, self._suites, self._rules, self.expires_s = _load(settings)
        self._settings, self._files = settings, files


class _Loaded(NamedTuple):
    """What the settings and files of a listener give."""

    context: ssl.SSLContext
    suites: CipherSuites | None
    rules: tuple[Rule, ...]
    expires_s: int


def _load(settings: SecuritySettings) -> _Loaded:
    material = key_material(settings)
    if material is None:
        raise UserError(
            "a listener with TLS needs a key: set ssl.keystore.location, or ssl.keystore.key "
            "and ssl.keystore.certificate.chain"
        )
    expires_s = _expiry(material)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    suites = _configure(context, settings, material)
    context.verify_mode = _CLIENT_AUTH[settings.ssl_client_auth]
    context.num_tickets = 0  # each would be sent to every client, and none resumes
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, settings)
    return _Loaded(context, suites, parse_rules(settings.ssl_principal_mapping_rules), expires_s)


class ClientTls:
    """TLS of outgoing connections."""

    def __init__(self, settings: TlsSettings) -> None:
        self.refresh(settings)

    def is_stale(self, settings: TlsSettings) -> bool:
        """Whether these settings, or the files they name, differ from what is in force."""
        return settings != self._settings or _files(settings) != self._files

    def refresh(self, settings: TlsSettings) -> None:
        """Use these settings and files for new connections; a UserError leaves all as it was."""
        files = _files(settings)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _configure(context, settings, key_material(settings))
        context.check_hostname = bool(settings.ssl_endpoint_identification_algorithm)
        _trust(context, settings)
        self._context, self._settings, self._files = context, settings, files

    def session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, host: str) -> ssl.SSLObject:
        name = host.partition("%")[0]  # without the zone of an IPv6 address
        return self._context.wrap_bio(incoming, outgoing, server_hostname=name)

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        """A socket that blocks, on a thread; the handshake is done then."""
        return self._context.wrap_socket(connection, server_hostname=host)


def _configure(
    context: ssl.SSLContext, settings: TlsSettings, material: KeyMaterial | None
) -> CipherSuites | None:
    versions = [_VERSIONS[name] for name in settings.ssl_enabled_protocols if name in _VERSIONS]
    if not versions:
        raise UserError("ssl.enabled.protocols: expected at least one of TLSv1.2, TLSv1.3")
    suites = parse_suites(settings.ssl_cipher_suites)
    if suites is not None:
        wanted = {ssl.TLSVersion.TLSv1_2: suites.tls_12, ssl.TLSVersion.TLSv1_3: suites.tls_13}
        versions = [version for version in versions if wanted[version]]
        if not versions:
            raise UserError("ssl.cipher.suites: no suite fits ssl.enabled.protocols")
        if suites.tls_12:
            context.set_ciphers(suites.tls_12)
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if material is not None:
        _load_key(context, material)
    return suites


def _load_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    password: Callable[[], str] = lambda: material.password or ""  # noqa: E731 (never ask a terminal)
    with _in_memory(material.chain + material.key) as path:
        try:
            context.load_cert_chain(path, password=password)
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or "unreadable"
            detail = reason.lower().replace("_", " ")
            if "key values mismatch" in detail:
                detail = "the private key does not belong to the certificate"
            elif material.password is not None and detail != "no start line":
                detail = "wrong ssl.key.password"
            raise UserError(f"ssl.keystore: cannot use the private key: {detail}") from None


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    certificates = trusted_certificates(settings)
    if certificates is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, TypeError, ValueError) as error:  # the last two: no base64 at all
        reason = getattr(error, "reason", None) or "damaged"
        raise UserError(f"ssl.truststore: cannot use the certificates: {reason}") from None


def _check_suite(session: ssl.SSLObject, suites: CipherSuites | None) -> None:
    cipher = session.cipher()
    if suites is not None and cipher is not None and cipher[0] not in suites.names:
        raise Disconnect(f"cipher suite {cipher[0]} is not among ssl.cipher.suites")


@contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A path under which the text can be read while the block lasts."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("ottla-key")
        try:
            os.write(fd, text.encode())
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
        return
    with tempfile.NamedTemporaryFile("w") as file:  # readable by its owner only
        file.write(text)
        file.flush()
        yield file.name


def _files(settings: TlsSettings) -> tuple[FileState | None, ...]:
    return (
        FileState.of(settings.ssl_keystore_location),
        FileState.of(settings.ssl_truststore_location),
    )


def _expiry(material: KeyMaterial) -> int:
    end = material.chain.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
    try:
        return expiry_of(ssl.PEM_cert_to_DER_cert(material.chain[:end]))
    except (IndexError, ValueError):  # of base64, of its text, of DER
        raise UserError("ssl.keystore: cannot use the certificate: damaged") from None
