"""ZooKeeper as the settings of a broker say it is reached: TLS, login, ACLs.

Owns: the meaning of `zookeeper.*` and of the section `Client` of the JAAS file. Shared by brokers
and by commands that read their metadata. Never connects: the store does when it is started.
"""

from __future__ import annotations

import errno
import socket
import ssl
from importlib.util import find_spec

from ottla.config.broker import BrokerConfig
from ottla.config.tls import TlsSettings
from ottla.model.errors import UserError
from ottla.net.tls.failures import reason_of
from ottla.security.sasl import jaas
from ottla.security.tls.contexts import ClientTls
from ottla.store.port import Store


def zookeeper_store(config: BrokerConfig) -> Store:
    """The ensemble that `zookeeper.connect` names; a UserError says what is missing."""
    try:
        from ottla.store.zookeeper import ZooKeeperStore
        from ottla.store.zookeeper_connection import DigestLogin, ZooKeeperSecurity
    except ImportError:
        raise UserError("zookeeper.connect requires kazoo: pip install 'ottla[cluster]'") from None
    assert config.zookeeper_connect is not None, "called only if zookeeper.connect is set"
    tls = _Tls(config.zookeeper_tls) if config.zookeeper_ssl_client_enable else None
    credentials = _credentials(config)
    security = ZooKeeperSecurity(
        wrap=None if tls is None else tls.wrap,
        login=None if credentials is None else DigestLogin(*credentials),
        with_acls=config.zookeeper_set_acl,
    )
    has_certificate = tls is not None and config.zookeeper_ssl_keystore_location is not None
    if config.zookeeper_set_acl and security.login is None and not has_certificate:
        raise UserError(
            "zookeeper.set.acl=true needs an identity: a section Client in the file of "
            f"{jaas.FILE}, or zookeeper.ssl.client.enable with zookeeper.ssl.keystore.location"
        )
    return ZooKeeperStore(
        config.zookeeper_connect,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        security=security,
    )


class _Tls:
    """Certificates are read again for a connection if their files have changed."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        try:
            self._tls = ClientTls(settings)
        except UserError as error:
            raise UserError(f"zookeeper.{error}") from None

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        try:
            if self._tls.is_stale(self._settings):
                self._tls.refresh(self._settings)
            return self._tls.wrap(connection, host)
        except ssl.SSLError as error:
            raise OSError(errno.EPROTO, f"TLS handshake failed: {reason_of(error)}") from None
        except UserError as error:
            raise OSError(errno.EINVAL, f"zookeeper.{error}") from None


def _credentials(config: BrokerConfig) -> tuple[str, str] | None:
    """User and password of DIGEST-MD5, from the JAAS file."""
    path = config.java_security_auth_login_config
    if path is None:
        return None
    entries = jaas.read_section(path, "Client", modules=(jaas.DIGEST_MODULE,))
    if not entries:
        return None
    options = entries[0].options
    user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        raise UserError(f"{jaas.FILE}={path}: section Client needs username and password")
    if find_spec("puresasl") is None:
        raise UserError("a login to ZooKeeper requires pure-sasl: pip install 'ottla[cluster]'")
    return user, password
