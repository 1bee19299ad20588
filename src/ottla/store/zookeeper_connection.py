"""How ZooKeeper is reached: over TLS, with a login, and who may read what is created there.

Owns: kazoo's sockets, the ACL of each node that is created, and the reason why the last connection
failed. Never chooses certificates or passwords: they are handed in.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from ottla.store import paths

SENSITIVE: Final = (
    paths.CONFIG_USERS,
    paths.CONFIG_BROKERS,
    paths.TOKENS,
    paths.SCRAM_SECRET,
)
"""Below these stand credentials: only brokers may read them. The last one is not Kafka's."""

Watched: TypeAlias = list[socket.socket | int]
"""What a select waits for: kazoo's connection, and the pipe that wakes it."""
WrapSocket = Callable[[socket.socket, str], ssl.SSLSocket]
"""Makes a TLS connection of a socket, given the host name; OSError says why it cannot."""


class DigestLogin(NamedTuple):
    user: str
    password: str

    def __repr__(self) -> str:
        return f"DigestLogin({self.user!r}, [hidden])"


class ZooKeeperSecurity(NamedTuple):
    """How to reach an ensemble, and whether nodes get ACLs."""

    wrap: WrapSocket | None = None
    login: DigestLogin | None = None
    with_acls: bool = False

    def acl(self, path: str) -> Sequence[ACL]:
        """As Kafka's: this identity may do everything, and others may read what is not secret."""
        if not self.with_acls:
            return list(OPEN_ACL_UNSAFE)
        if path.startswith(SENSITIVE):
            return list(CREATOR_ALL_ACL)
        return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    @property
    def sasl_options(self) -> dict[str, str] | None:
        if self.login is None:
            return None
        user, password = self.login
        return {"mechanism": "DIGEST-MD5", "username": user, "password": password}


class ConnectionHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Opens kazoo's connections."""

    def __init__(self, wrap: WrapSocket | None) -> None:
        super().__init__()
        self._wrap = wrap
        self.failure: str | None = None
        """Why the last connection could not be opened; None: it could."""

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str = "",
        timeout: float | None = None,
        **_: object,
    ) -> socket.socket:
        host = hostname or address[0]
        connection: socket.socket = super().create_connection(address, timeout=timeout)
        try:
            wrapped = connection if self._wrap is None else self._wrap(connection, host)
        except OSError as error:
            self.failure = f"{host}:{address[1]}: {error.strerror or error}"
            connection.close()
            raise
        self.failure = None
        return wrapped

    def select(
        self, readers: Watched, writers: Watched, others: Watched, timeout: float
    ) -> tuple[Watched, Watched, Watched]:
        """Also what TLS has decrypted and nobody has read: the system does not know of it."""
        pending = [each for each in readers if isinstance(each, ssl.SSLSocket) and each.pending()]
        rest = [each for each in readers if each not in pending]
        ready = super().select(rest, writers, others, 0 if pending else timeout)
        return [*pending, *ready[0]], ready[1], ready[2]


def client_log() -> logging.Logger:
    """For kazoo. It logs whole requests below INFO, credentials included: those are dropped."""
    log = logging.getLogger(f"{__name__}.kazoo")
    if not log.filters:
        log.addFilter(lambda record: record.levelno >= logging.INFO)
    return log
