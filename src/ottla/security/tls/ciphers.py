"""Cipher suites: Java's names and OpenSSL's. Pure.

Owns: the translation of `ssl.cipher.suites`. Python's `ssl` cannot choose among the suites of
TLS 1.3, so the suite that was negotiated is compared with the allowed ones after the handshake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.model.errors import UserError

NAME: Final = "ssl.cipher.suites"
TLS_13: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_128_CCM_SHA256",
)
TLS_12: Final = {
    f"TLS_{key}_WITH_{cipher}": f"{prefix}{name}"
    for key, prefix in (
        ("ECDHE_ECDSA", "ECDHE-ECDSA-"),
        ("ECDHE_RSA", "ECDHE-RSA-"),
        ("DHE_RSA", "DHE-RSA-"),
        ("RSA", ""),
    )
    for cipher, name in (
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
        ("AES_256_CBC_SHA384", "AES256-SHA384"),
        ("AES_256_CBC_SHA256", "AES256-SHA256"),
        ("AES_128_CBC_SHA256", "AES128-SHA256"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_CBC_SHA", "AES128-SHA"),
    )
}


class CipherSuites(NamedTuple):
    """`tls_12`: OpenSSL's list of the older suites; `tls_13`: the allowed newer ones."""

    tls_12: str
    tls_13: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """Every allowed suite, as OpenSSL reports the one it negotiated."""
        return self.tls_13 | frozenset(self.tls_12.split(":"))


def parse_suites(names: Sequence[str]) -> CipherSuites | None:
    """None: whatever OpenSSL takes for secure."""
    if not names:
        return None
    older: list[str] = []
    newer: set[str] = set()
    for name in names:
        if name in TLS_13:
            newer.add(name)
        elif name in TLS_12:
            older.append(TLS_12[name])
        elif name in TLS_12.values():
            older.append(name)
        else:
            raise UserError(f"{NAME}: unknown or unsafe cipher suite {name!r}")
    return CipherSuites(":".join(older), frozenset(newer))
