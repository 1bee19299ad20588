"""Why a TLS handshake failed, in words that name the cause. Pure.

Owns: the translation of OpenSSL's errors. Never includes anything of a key or a certificate but the
names that OpenSSL itself reports.
"""

from __future__ import annotations

import ssl
from typing import Final

from ottla.net.error_log import hint

HANDSHAKE_RECORD: Final = 0x16

_VERIFICATION: Final = {
    9: "certificate is not yet valid",
    10: "certificate has expired",
    18: "unknown authority: the certificate is self-signed and not in the trust store",
    19: "unknown authority: the chain ends in a self-signed certificate that is not in the trust "
    "store",
    20: "unknown authority: the issuer of the certificate is not in the trust store",
    21: "unknown authority: the issuer of the certificate is not in the trust store",
    23: "certificate is revoked",
}
_HOST_NAME: Final = frozenset({62, 64})  # of a name, of an address
_REASONS: Final = {
    "CERTIFICATE_REQUIRED": "the peer requires a client certificate, and none was sent",
    "HTTP_REQUEST": "the peer sent an HTTP request to a TLS port",
    "NO_SHARED_CIPHER": "no cipher suite in common; see ssl.cipher.suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate, and ssl.client.auth is "
    "required",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer refused our certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer refused our certificate: it has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer refused our certificate: unknown authority or "
    "wrong host name",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the peer refused the handshake: no cipher suite in common, "
    "or a client certificate is missing",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no TLS version in common; see ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer refused our certificate: unknown authority",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer requires a client certificate, and none was "
    "sent",
    "UNSUPPORTED_PROTOCOL": "no TLS version in common; see ssl.enabled.protocols",
    "WRONG_VERSION_NUMBER": "the peer does not use TLS on this port: check security.protocol",
}

_REFUSED_CERTIFICATE: Final = frozenset(
    {"CERTIFICATE_VERIFY_FAILED", "PEER_DID_NOT_RETURN_A_CERTIFICATE"}
)


def reason_of(error: Exception) -> str:
    """One line for the log or the user."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _HOST_NAME:
            return f"host name mismatch: {error.verify_message.rstrip('.')}"
        return _VERIFICATION.get(error.verify_code, error.verify_message)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "the peer closed the connection during the handshake"
    if isinstance(error, ssl.SSLError) and error.reason:
        return _REASONS.get(error.reason, error.reason.lower().replace("_", " "))
    return str(error) or type(error).__name__


def concerns_certificate(error: Exception) -> bool:
    """Whether a broker refused its client's certificate, or missed it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return isinstance(error, ssl.SSLError) and error.reason in _REFUSED_CERTIFICATE


def is_final(error: Exception) -> bool:
    """Whether another attempt would fail as well: the two sides do not trust each other."""
    return isinstance(error, ssl.SSLError) and not isinstance(
        error, ssl.SSLEOFError | ssl.SSLZeroReturnError
    )


def plaintext_hint(first: bytes) -> str | None:
    """What a peer sent whose first bytes are no TLS record; None if they are one."""
    if first[0] == HANDSHAKE_RECORD:
        return None
    known = hint(first[:4])
    return known or (
        "this looks like a plaintext request: this listener uses TLS; set security.protocol to SSL "
        "or SASL_SSL"
    )
