"""A development authority, and the certificates it issues.

Owns: keys and certificates for trying TLS on one machine or in a test: elliptic curve keys, a year
of validity. Never for production: the authority's key stands in the same directory.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.errors import UserError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

VALID_DAYS: Final = 365
LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Issued(NamedTuple):
    """A private key and its certificate, as objects of cryptography."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def key_pem(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        pem: bytes = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return pem

    def certificate_pem(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        pem: bytes = self.certificate.public_bytes(serialization.Encoding.PEM)
        return pem


def local_hosts() -> tuple[str, ...]:
    """The names of this machine; a listener on every address is advertised by the last one."""
    return (*LOCAL, os.uname().nodename, socket.getfqdn())


def make_authority(name: str, now_s: float, *, days: int = VALID_DAYS) -> Issued:
    """An authority that trusts itself."""
    return _issue(name, None, now_s, hosts=(), days=days)


def issue(
    authority: Issued,
    name: str,
    now_s: float,
    *,
    hosts: Sequence[str] = (),
    days: int = VALID_DAYS,
) -> Issued:
    """A certificate for a broker with these host names and addresses, or for a client."""
    return _issue(name, authority, now_s, hosts=hosts, days=days)


def make_directory(
    directory: Path, now_s: float, *, hosts: Sequence[str], clients: Sequence[str], password: str
) -> list[Path]:
    """Authority, broker and clients as PEM and PKCS12 files; the files that were written."""
    authority = make_authority("Ottla development authority", now_s)
    files = {
        "ca.pem": authority.certificate_pem(),
        "ca.key": authority.key_pem(),
        "truststore.p12": _trust_store(authority, password),
        **_files("broker", issue(authority, "broker", now_s, hosts=hosts), authority, password),
    }
    for name in clients:
        files |= _files(name, issue(authority, name, now_s), authority, password)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, content in files.items():
            write_private(directory / file, content)
    except OSError as error:
        raise UserError(f"{directory}: {error.strerror}") from None
    return [directory / file for file in sorted(files)]


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, at any time."""
    path.unlink(missing_ok=True)
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "wb") as file:
        file.write(content)


def _files(name: str, issued: Issued, authority: Issued, password: str) -> dict[str, bytes]:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    store = pkcs12.serialize_key_and_certificates(
        name.encode(),
        issued.key,
        issued.certificate,
        [authority.certificate],
        BestAvailableEncryption(password.encode()),
    )
    pem = issued.key_pem() + issued.certificate_pem() + authority.certificate_pem()
    return {f"{name}.pem": pem, f"{name}.p12": store}


def _trust_store(authority: Issued, password: str) -> bytes:
    """As Java wants it: certificates marked as trusted."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    certificate = pkcs12.PKCS12Certificate(authority.certificate, b"ca")
    store: bytes = pkcs12.serialize_java_truststore(
        [certificate], BestAvailableEncryption(password.encode())
    )
    return store


def _issue(
    name: str, issuer: Issued | None, now_s: float, *, hosts: Sequence[str], days: int
) -> Issued:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise UserError(
            "making certificates needs the package cryptography: pip install 'ottla[security]'"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.fromtimestamp(now_s, UTC)
    signing_key = key if issuer is None else issuer.key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1 if days > 0 else 1 - days))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if issuer is not None:
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general_name(host) for host in hosts]),
            critical=False,
        )
    return Issued(key, builder.sign(signing_key, hashes.SHA256()))


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
