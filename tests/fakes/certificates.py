"""Certificates for tests, made once for each process."""

from __future__ import annotations

import ssl
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.config.client import AdminConfig
from ottla.security.tls.authority import Issued, issue, make_authority
from ottla.security.tls.contexts import ClientTls, ServerTls

HOSTS = ("localhost", "127.0.0.1", "::1")


class Certificates(NamedTuple):
    """An authority, a broker and two clients; another authority, and what has expired."""

    authority: Issued
    broker: Issued
    alice: Issued
    other_authority: Issued
    stranger: Issued
    expired: Issued
    elsewhere: Issued


@cache
def certificates() -> Certificates:
    now_s = time.time()
    authority = make_authority("test authority", now_s)
    other = make_authority("other authority", now_s)
    return Certificates(
        authority,
        issue(authority, "broker", now_s, hosts=HOSTS),
        issue(authority, "alice", now_s),
        other,
        issue(other, "broker", now_s, hosts=HOSTS),
        issue(authority, "broker", now_s, hosts=HOSTS, days=-1),
        issue(authority, "broker", now_s, hosts=("elsewhere.example",)),
    )


def pem(issued: Issued) -> dict[str, str]:
    """A key store in settings."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem().decode(),
        "ssl.keystore.certificate.chain": issued.certificate_pem().decode(),
    }


def trust(authority: Issued) -> dict[str, str]:
    return {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate_pem().decode(),
    }


def server_tls(texts: dict[str, str], *, with_login: bool = False) -> ServerTls:
    return ServerTls(BrokerConfig.parse(texts), with_login=with_login)


def client_tls(texts: dict[str, Any]) -> ClientTls:
    return ClientTls(AdminConfig.from_options({}, texts))


def client_context(tmp_path: Path, *, trusts: Issued | None = None) -> ssl.SSLContext:
    """A client that is not ours."""
    context = ssl.create_default_context()
    authority = trusts or certificates().authority
    context.load_verify_locations(cadata=authority.certificate_pem().decode())
    return context
