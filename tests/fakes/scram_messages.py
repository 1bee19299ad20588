"""Final messages of SCRAM clients that know the password and still change what they must not."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from ottla.security.sasl.scram import HASHES, salted_password

NO_BINDING: Final = "biws"
"""`n,,` in base64."""


def proved(
    mechanism: str,
    password: str,
    first: bytes,
    challenge: bytes,
    *,
    nonce: str | None = None,
    binding: str = NO_BINDING,
) -> bytes:
    """A final message whose proof is right for what it says; `nonce`: instead of the agreed one."""
    name = HASHES[mechanism]
    agreed, salt, iterations = (part[2:] for part in challenge.decode().split(",")[:3])
    salted = salted_password(mechanism, password, base64.b64decode(salt), int(iterations))
    key = hmac.digest(salted, b"Client Key", name)
    bare = f"c={binding},r={agreed if nonce is None else nonce}"
    message = b",".join((first.removeprefix(b"n,,"), challenge, bare.encode()))
    signature = hmac.digest(hashlib.new(name, key).digest(), message, name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{bare},p={base64.b64encode(proof).decode()}".encode()
