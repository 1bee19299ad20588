"""An issuer of tokens: a signing key, and a host that says over https whatever a test wants.

Owns: keys and tokens of OAUTHBEARER, and raw answers, so that they may be malformed.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ottla.security.sasl.key_sets import WebKey
from tests.fakes.certificates import certificates


class SigningKey:
    """A key pair with an id."""

    def __init__(self, id: str = "k1", now_s: float | None = None) -> None:
        """`now_s`: when its tokens are made; None for the moment of each."""
        from cryptography.hazmat.primitives.asymmetric import rsa
        from jwt.algorithms import RSAAlgorithm

        self.id = id
        self._now_s = now_s
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = json.loads(RSAAlgorithm.to_jwk(self.private.public_key()))
        self.entry: WebKey = {**public, "kid": id, "alg": "RS256", "use": "sig"}

    def token(self, headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """Valid for a minute unless the claims say otherwise; None leaves a claim out."""
        import jwt

        now_s = time.time() if self._now_s is None else self._now_s
        content = {"sub": "alice", "exp": now_s + 60, "iat": now_s, "aud": "kafka", "iss": "us"}
        content |= claims
        content = {name: value for name, value in content.items() if value is not None}
        return jwt.encode(
            content, self.private, "RS256", headers={"kid": self.id} | (headers or {})
        )


def is_whole(request: bytes) -> bool:
    """Whether an HTTP request is here with its body."""
    head, end, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\nContent-Length: *(\d+)", head)
    return bool(end) and len(body) >= (0 if length is None else int(length[1]))


class HttpsHost:
    """Answers on `localhost`, by path, with a certificate of the test authority."""

    def __init__(self, folder: Path) -> None:
        broker = certificates().broker
        store, self.authority_file = folder / "host.pem", folder / "authority.pem"
        store.write_bytes(broker.key_pem() + broker.certificate_pem())
        self.authority_file.write_bytes(certificates().authority.certificate_pem())
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(store)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, name="https host", daemon=True)
        self.answers: dict[str, bytes] = {}
        """The whole answer by path, status line included; the connection ends after it."""
        self.requests: list[bytes] = []

    @property
    def address(self) -> str:
        return f"https://localhost:{self._listening.getsockname()[1]}"

    def request_count(self, path: str) -> int:
        """How often this path was asked for."""
        return sum(request.split(b" ")[1] == path.encode() for request in list(self.requests))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listening.accept()
            except OSError:
                return  # closed
            try:
                with plain, self._context.wrap_socket(plain, server_side=True) as connection:
                    connection.settimeout(10)
                    self._answer(connection)
            except OSError:
                continue  # the client did not trust this host

    def _answer(self, connection: ssl.SSLSocket) -> None:
        request = b""
        while not is_whole(request):
            some = connection.recv(65_536)
            if not some:
                return
            request += some
        self.requests.append(request)
        path = request.split(b" ")[1].decode()
        connection.sendall(self.answers.get(path, b"HTTP/1.1 404 Not Found\r\n\r\n"))
        connection.unwrap()


def document(content: object) -> bytes:
    """The answer of a host that has this JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
