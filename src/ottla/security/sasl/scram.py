"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802): messages, credentials, both sides. Pure.

Owns: Kafka's text form of a credential, and the checks of both sides. A broker never has a
password, only keys derived from it. An unknown user gets a salt that is always the same, derived
from a secret of the cluster and of the shape of a real one, and fails where a wrong password fails.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import heapq
import hmac
import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.model.clock import WallMs
from ottla.model.errors import AuthenticationFailed
from ottla.security.sasl.exchange import SENTENCE, LoginFailed, Step

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN: Final = 4_096
ITERATIONS_DEFAULT: Final = 8_192
ITERATIONS_MAX: Final = 16_384
"""Kafka's bound for credentials that are set."""
CLIENT_ITERATIONS_MAX: Final = 500_000
"""What our client computes at most for a broker: a third of a second."""
NONCE_BYTES: Final = 24
SALT_BYTES: Final = 24
"""Of the credentials that Ottla makes; other tools' salts may have another length."""
SHAPES_MAX: Final = 16
"""How many shapes, the commonest, unknown users are spread over: a bound on the work of a login."""
TOKEN_MAX_BYTES: Final = 8 << 10

_CLIENT_FIRST: Final = re.compile(
    r"(?P<header>[ny],(?:a=(?P<id>[^,]*))?,)(?P<bare>n=(?P<user>[^,]+),r=(?P<nonce>[!-+\--~]+)"
    r"(?P<more>(?:,[A-Za-z]+=[^,]+)*))"
)
_CLIENT_FINAL: Final = re.compile(
    r"(?P<bare>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_SERVER_FIRST: Final = re.compile(
    r"r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,9})(?:,.*)?"
)
_FIELDS: Final = re.compile(
    r"salt=(?P<salt>[^,]+),stored_key=(?P<stored>[^,]+),server_key=(?P<server>[^,]+),"
    r"iterations=(?P<iterations>[0-9]{1,9})"
)

MECHANISM_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""As Kafka's requests name them."""
MECHANISM_NAMES: Final = {number: name for name, number in MECHANISM_NUMBERS.items()}

log = logging.getLogger(__name__)

RunBlocking = Callable[[Callable[[], bytes]], Awaitable[bytes]]


class Credential(NamedTuple):
    """What a broker knows of a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __str__(self) -> str:
        """Kafka's text, as it stands in the metadata store."""
        return (
            f"salt={_base64(self.salt)},stored_key={_base64(self.stored_key)},"
            f"server_key={_base64(self.server_key)},iterations={self.iterations}"
        )

    def __repr__(self) -> str:
        return f"Credential([hidden], iterations={self.iterations})"

    @property
    def shape(self) -> Shape:
        return Shape(len(self.salt), self.iterations)

    @classmethod
    def parse(cls, text: str) -> Credential:
        match = _FIELDS.fullmatch(text)
        if match is None:
            raise ValueError("expected salt=…,stored_key=…,server_key=…,iterations=…")
        salt, stored, server = (_decode(match[name]) for name in ("salt", "stored", "server"))
        return cls(salt, stored, server, int(match["iterations"]))

    @classmethod
    def of_salted(
        cls, mechanism: str, salted_password: bytes, salt: bytes, iterations: int
    ) -> Credential:
        """From what AlterUserScramCredentials carries."""
        name = HASHES[mechanism]
        client_key = hmac.digest(salted_password, b"Client Key", name)
        server_key = hmac.digest(salted_password, b"Server Key", name)
        return cls(salt, hashlib.new(name, client_key).digest(), server_key, iterations)


def nonce(random_bytes: Callable[[int], bytes]) -> str:
    """The part of the nonce that one side adds."""
    return base64.b64encode(random_bytes(NONCE_BYTES)).decode()


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Slow by design: for a thread, not for the event loop."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


class Shape(NamedTuple):
    """The parameters of a credential that the first message of a login reveals to anybody."""

    salt_bytes: int
    iterations: int


DEFAULT_SHAPE: Final = Shape(SALT_BYTES, ITERATIONS_DEFAULT)
TOKEN_SHAPE: Final = Shape(SALT_BYTES, ITERATIONS_MIN)


class UnknownUsers(NamedTuple):
    """What users without a credential are asked to prove; nobody can.

    Every broker asks an unknown user for the same, and so does a login a week later: the shape and
    the salt depend on the name and the secret, and on how many credentials have which shape.
    """

    secret: bytes
    shapes: Mapping[Shape, int]
    """How many users have a credential of each shape."""

    def credential(self, mechanism: str, user: str, shape: Shape | None = None) -> Credential:
        shape = shape or self._shape(user)
        kinds = ("a", "b", f"salt:{shape.salt_bytes}:{shape.iterations}")
        stored, server, seed = (
            hmac.digest(self.secret, f"{kind}:{user}".encode(), HASHES[mechanism]) for kind in kinds
        )
        salt = hashlib.shake_256(seed).digest(shape.salt_bytes)
        return Credential(salt, stored, server, shape.iterations)

    def _shape(self, user: str) -> Shape:
        """Shapes are as frequent as among real users; a new user changes the shape of few names."""
        shapes: Iterable[tuple[Shape, int]] = self.shapes.items()
        if len(self.shapes) > SHAPES_MAX:
            shapes = heapq.nlargest(SHAPES_MAX, shapes, key=lambda item: (item[1], item[0]))

        def rank(shape: Shape, users: int) -> float:  # weighted rendezvous hashing
            text = f"shape:{shape.salt_bytes}:{shape.iterations}:{user}"
            drawn = int.from_bytes(hmac.digest(self.secret, text.encode(), "sha256")[:6])
            return -users / math.log((drawn + 0.5) / (1 << 48))

        return max(shapes, key=lambda item: rank(*item), default=(DEFAULT_SHAPE, 0))[0]


class TokenLogin(NamedTuple):
    """What a login with a delegation token must prove, who it is for, and until when."""

    credential: Credential
    owner: str
    expires_ms: WallMs


class TokenLogins(Protocol):
    def login(self, id: str, mechanism: str) -> TokenLogin | None:
        """None: there is no such token."""


class ScramCredentials:
    """The credentials of all users. One writer: `shared_state/config_store.py`."""

    def __init__(self) -> None:
        self.secret = b""  # derives the salts of unknown users
        self.tokens: TokenLogins | None = None  # None: delegation tokens are not offered
        self._by_mechanism: dict[str, dict[str, Credential]] = {name: {} for name in HASHES}
        self._shapes: dict[str, Counter[Shape]] = {name: Counter() for name in HASHES}

    def of(self, mechanism: str) -> Mapping[str, Credential]:
        return self._by_mechanism[mechanism]

    def unknown(self, mechanism: str) -> UnknownUsers:
        return UnknownUsers(self.secret, self._shapes[mechanism])

    def users(self) -> list[str]:
        """Everyone who has a credential, in order."""
        return sorted({user for users in self._by_mechanism.values() for user in users})

    def of_user(self, user: str) -> dict[str, int]:
        """The iterations of each credential of a user, by mechanism."""
        return {
            mechanism: users[user].iterations
            for mechanism, users in self._by_mechanism.items()
            if user in users
        }

    def set_user(self, user: str, settings: Mapping[str, str]) -> None:
        """Replace all credentials of a user by those among its settings."""
        for mechanism in self._by_mechanism:
            self._drop(mechanism, user)
            text = settings.get(mechanism)
            if text is None:
                continue
            try:
                credential = Credential.parse(text)
            except ValueError as error:
                log.error(
                    "cannot parse the %s credential of a user; refusing the user's logins by it "
                    "until it is set again: %s",
                    mechanism, error,
                )  # fmt: skip
                continue
            self._by_mechanism[mechanism][user] = credential
            self._shapes[mechanism][credential.shape] += 1

    def keep_only(self, users: Iterable[str]) -> None:
        """Drop everyone else: their nodes have gone."""
        kept = frozenset(users)
        for mechanism, credentials in self._by_mechanism.items():
            for user in credentials.keys() - kept:
                self._drop(mechanism, user)

    def _drop(self, mechanism: str, user: str) -> None:
        credential = self._by_mechanism[mechanism].pop(user, None)
        if credential is not None:
            shapes = self._shapes[mechanism]
            shapes[credential.shape] -= 1
            if not shapes[credential.shape]:
                del shapes[credential.shape]


class ScramServer:
    """One login. `nonce` is this side's part."""

    blocks = False

    def __init__(
        self,
        mechanism: str,
        credentials: Mapping[str, Credential],
        nonce: str,
        unknown: UnknownUsers,
        tokens: TokenLogins | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._credentials = credentials
        self._nonce = nonce
        self._unknown = unknown
        self._tokens = tokens
        self._token: TokenLogin | None = None
        self._user: str | None = None

    def evaluate(self, token: bytes) -> Step:
        text = self._text(token)
        return self._first(text) if self._user is None else self._final(text)

    def _first(self, text: str) -> Step:
        match = _CLIENT_FIRST.fullmatch(text)
        if match is None:
            raise self._failure("malformed first message")
        user = _plain_name(match["user"])
        if user is None:
            raise self._failure("malformed user name")
        authorization_id = _plain_name(match["id"] or "")
        if authorization_id and authorization_id != user:
            raise self._failure("another authorization id", user)
        self._user = user
        is_token = ",tokenauth=true," in f"{match['more']},".lower()
        known = self._token_credential(user) if is_token else self._credentials.get(user)
        # Derived for known users as well: the time must not tell them from unknown ones.
        pretended = self._unknown.credential(
            self._mechanism, user, TOKEN_SHAPE if is_token else None
        )
        credential = known or pretended
        self._credential = known
        self._nonce = match["nonce"] + self._nonce
        self._binding = _base64(match["header"].encode())
        answer = f"r={self._nonce},s={_base64(credential.salt)},i={credential.iterations}"
        self._transcript = f"{match['bare']},{answer}"
        self._checked = credential
        return Step(answer.encode())

    def _final(self, text: str) -> Step:
        user = self._user
        assert user is not None
        match = _CLIENT_FINAL.fullmatch(text)
        if match is None:
            raise self._failure("malformed final message", user)
        if match["nonce"] != self._nonce or match["binding"] != self._binding:
            raise self._failure("altered nonce or channel binding", user)
        message = f"{self._transcript},{match['bare']}".encode()
        credential = self._checked
        proof = self._proof(match["proof"], len(credential.stored_key), user)
        signature = hmac.digest(credential.stored_key, message, self._hash)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored = hashlib.new(self._hash, client_key).digest()
        equal = hmac.compare_digest(stored, credential.stored_key)
        if self._credential is None or not equal:
            raise self._failure("unknown user" if self._credential is None else "wrong proof", user)
        verifier = hmac.digest(credential.server_key, message, self._hash)
        answer = f"v={_base64(verifier)}".encode()
        if self._token is None:
            return Step(answer, user)
        owner = self._token.owner.partition(":")[2]
        return Step(answer, owner, self._token.expires_ms, by_token=True)

    def _token_credential(self, id: str) -> Credential | None:
        if self._tokens is None:
            raise self._failure("delegation tokens are not offered", id)
        self._token = self._tokens.login(id, self._mechanism)
        return None if self._token is None else self._token.credential

    def _proof(self, text: str, size: int, user: str) -> bytes:
        try:
            proof = _decode(text)
        except ValueError:
            proof = b""
        if len(proof) != size:
            raise self._failure("malformed proof", user)
        return proof

    def _text(self, token: bytes) -> str:
        if len(token) > TOKEN_MAX_BYTES:
            raise self._failure("message too long")
        try:
            return token.decode("utf-8")
        except UnicodeDecodeError:
            raise self._failure("message is not UTF-8") from None

    def _failure(self, reason: str, user: str = "") -> LoginFailed:
        return LoginFailed(f"{SENTENCE}{self._mechanism}", reason, user=user)


class ScramClient:
    """One login of ours. Checks that the broker knows the credential, too."""

    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str,
        nonce: str,
        run: RunBlocking,
        *,
        is_token: bool = False,
    ) -> None:
        """`is_token`: user and password are the id and the HMAC of a delegation token."""
        self._extensions = ",tokenauth=true" if is_token else ""
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._user = user
        self._password = password
        self._nonce = nonce
        self._run = run
        self._verifier: bytes | None = None

    async def first(self) -> bytes:
        name = self._user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}{self._extensions}"
        return f"n,,{self._bare}".encode()

    async def evaluate(self, challenge: bytes) -> bytes | None:
        text = challenge.decode("utf-8", "replace")
        if self._verifier is None:
            return await self._final(text)
        if not hmac.compare_digest(text.encode(), b"v=" + _base64(self._verifier).encode()):
            raise AuthenticationFailed(
                f"{self._mechanism}: the broker does not know the password of {self._user}: "
                "it may be an impostor"
            )
        return None

    async def _final(self, text: str) -> bytes:
        match = _SERVER_FIRST.fullmatch(text)
        if match is None:
            raise AuthenticationFailed(f"{self._mechanism}: malformed message from the broker")
        nonce, iterations = match["nonce"], int(match["iterations"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed(f"{self._mechanism}: the broker altered the nonce")
        if not ITERATIONS_MIN <= iterations <= CLIENT_ITERATIONS_MAX:
            raise AuthenticationFailed(
                f"{self._mechanism}: the broker asks for {iterations} iterations, expected "
                f"{ITERATIONS_MIN} to {CLIENT_ITERATIONS_MAX}"
            )
        try:
            salt = _decode(match["salt"])
        except ValueError:
            raise AuthenticationFailed(f"{self._mechanism}: malformed salt") from None
        bare = f"c=biws,r={nonce}"
        message = f"{self._bare},{text},{bare}".encode()
        salted = await self._run(
            lambda: salted_password(self._mechanism, self._password, salt, iterations)
        )
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored, message, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._verifier = hmac.digest(server_key, message, self._hash)
        return f"{bare},p={_base64(proof)}".encode()


def _plain_name(text: str) -> str | None:
    """A user name as it was before ',' and '=' were replaced; None: it is malformed."""
    plain = text.replace("=2C", ",").replace("=3D", "\0")
    return None if "=" in plain else plain.replace("\0", "=")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
