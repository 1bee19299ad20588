"""Key stores and trust stores: PEM, PKCS12 and JKS, recognised by their content.

Owns: reading the files that settings name, and what is wrong with them in words that name the
setting. Never logs, and never puts a password or a key into an error.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from ottla.config.tls import TlsSettings
from ottla.model.errors import UserError
from ottla.security.tls import jks
from ottla.security.tls.der import BadDer

STORE_MAX_BYTES: Final = 16 << 20
_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=kind)-----", re.DOTALL
)


class KeyMaterial(NamedTuple):
    """A private key and its certificates as PEM; the key may be encrypted with `password`."""

    key: str
    chain: str
    password: str | None

    def __repr__(self) -> str:
        return "KeyMaterial([hidden])"


def key_material(settings: TlsSettings) -> KeyMaterial | None:
    """The key that the settings name; None: they name none."""
    if settings.ssl_keystore_key or settings.ssl_keystore_certificate_chain:
        return _inline_key(settings)
    location = settings.ssl_keystore_location
    if location is None:
        return None
    data = _file("ssl.keystore.location", location)
    _check_type("ssl.keystore", settings.ssl_keystore_type, location, data)
    if _is_pem(data):
        text = data.decode("ascii", "replace")
        return _pem_key(text, text, settings.ssl_key_password, f"ssl.keystore.location={location}")
    password = settings.ssl_keystore_password
    try:
        if data.startswith(jks.MAGIC):
            return _jks_key(data, password, settings.ssl_key_password)
        return _pkcs12_key(data, password)
    except (ValueError, BadDer) as error:
        raise _bad_store("ssl.keystore", location, error) from None


def trusted_certificates(settings: TlsSettings) -> str | None:
    """The certificates of trusted authorities as PEM; None: those of the system."""
    if settings.ssl_truststore_certificates:
        name, text = "ssl.truststore.certificates", settings.ssl_truststore_certificates
        return _certificates(text) or _fail(f"{name}: expected certificates as PEM")
    location = settings.ssl_truststore_location
    if location is None:
        return None
    data = _file("ssl.truststore.location", location)
    _check_type("ssl.truststore", settings.ssl_truststore_type, location, data)
    try:
        if _is_pem(data):
            text = _certificates(data.decode("ascii", "replace"))
        elif data.startswith(jks.MAGIC):
            store = jks.read(data, settings.ssl_truststore_password)
            text = "".join(map(_pem_certificate, store.certificates))
        else:
            text = _pkcs12_certificates(data, settings.ssl_truststore_password)
    except (ValueError, BadDer) as error:
        raise _bad_store("ssl.truststore", location, error) from None
    return text or _fail(f"ssl.truststore.location={location}: the store holds no certificate")


def _inline_key(settings: TlsSettings) -> KeyMaterial:
    key, chain = settings.ssl_keystore_key, settings.ssl_keystore_certificate_chain
    if not key or not chain:
        raise UserError("ssl.keystore.key and ssl.keystore.certificate.chain must be set together")
    return _pem_key(key, chain, settings.ssl_key_password, "ssl.keystore.key")


def _pem_key(key: str, chain: str, password: str | None, where: str) -> KeyMaterial:
    keys = [match for match in _BLOCK.finditer(key) if match["kind"].endswith("PRIVATE KEY")]
    certificates = _certificates(chain)
    if len(keys) != 1 or not certificates:
        raise UserError(f"{where}: expected one private key and its certificates as PEM")
    if keys[0]["kind"] == "ENCRYPTED PRIVATE KEY" and password is None:
        raise UserError(f"{where}: the private key is encrypted: set ssl.key.password")
    return KeyMaterial(_block(keys[0]), certificates, password)


def _jks_key(data: bytes, password: str | None, key_password: str | None) -> KeyMaterial:
    store = jks.read(data, password)
    if not store.keys:
        raise jks.BadKeyStore("the store holds no private key")
    secret = key_password if key_password is not None else password
    if secret is None:
        raise jks.BadKeyStore("set ssl.keystore.password or ssl.key.password")
    entry = store.keys[0]
    key = _pem("PRIVATE KEY", jks.private_key(entry, secret))
    return KeyMaterial(key, "".join(map(_pem_certificate, entry.chain)), None)


def _pkcs12_key(data: bytes, password: str | None) -> KeyMaterial:
    pkcs12, serialization = _cryptography()
    with _supported():
        key, certificate, more = pkcs12.load_key_and_certificates(data, _secret(password))
    if key is None or certificate is None:
        raise jks.BadKeyStore("the store holds no private key")
    encoding = serialization.Encoding.PEM
    text = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = b"".join(each.public_bytes(encoding) for each in (certificate, *more))
    return KeyMaterial(text.decode(), chain.decode(), None)


def _pkcs12_certificates(data: bytes, password: str | None) -> str:
    pkcs12, serialization = _cryptography()
    with _supported():
        _, own, more = pkcs12.load_key_and_certificates(data, _secret(password))
    certificates = [*more, *([own] if own is not None else [])]
    encoding = serialization.Encoding.PEM
    return "".join(each.public_bytes(encoding).decode() for each in certificates)


def _cryptography() -> tuple[ModuleType, ModuleType]:
    """Two modules of an optional package."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise UserError(
            "PKCS12 stores need the package cryptography: pip install 'ottla[security]'; "
            "or use PEM files"
        ) from None
    return pkcs12, serialization


@contextmanager
def _supported() -> Iterator[None]:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield
    except (TypeError, UnsupportedAlgorithm) as error:
        raise jks.BadKeyStore(f"unsupported: {error}") from None


def _secret(password: str | None) -> bytes | None:
    return None if password is None else password.encode()


def _file(name: str, location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            data = file.read(STORE_MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{name}={location}: {error.strerror}") from None
    if len(data) > STORE_MAX_BYTES:
        raise UserError(f"{name}={location}: expected at most {STORE_MAX_BYTES} bytes")
    return data


def _check_type(setting: str, kind: str, location: str, data: bytes) -> None:
    """PEM is text; the two binary formats are told apart by their content alone."""
    if kind == "PEM" and not _is_pem(data):
        raise UserError(f"{setting}.location={location}: expected PEM, as {setting}.type says")


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data


def _certificates(text: str) -> str:
    blocks = (match for match in _BLOCK.finditer(text) if match["kind"] == "CERTIFICATE")
    return "".join(map(_block, blocks))


def _block(match: re.Match[str]) -> str:
    """A block with its line breaks, which a value in a properties file may have lost."""
    kind, body = match["kind"], match["body"]
    if "\n" in body.strip():
        return match[0] + "\n"
    return _pem_text(kind, "".join(body.split()))


def _pem_certificate(der: bytes) -> str:
    return _pem("CERTIFICATE", der)


def _pem(kind: str, der: bytes) -> str:
    return _pem_text(kind, base64.b64encode(der).decode())


def _pem_text(kind: str, text: str) -> str:
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"


def _bad_store(setting: str, location: str, error: Exception) -> UserError:
    reason = str(error)
    if "password" in reason.lower():
        reason = f"wrong password, or the file is damaged: check {setting}.password"
    return UserError(f"{setting}.location={location}: cannot read the store: {reason}")


def _fail(text: str) -> str:
    raise UserError(text)
