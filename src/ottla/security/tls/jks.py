"""Java's old key store format, JKS. Pure.

Owns: its layout, the digest that protects it, and the cipher of its private keys, as `keytool
-storetype JKS` writes them. Never writes one: PKCS12 is the format to make.

A private key is encrypted with a key stream: SHA-1 of the password and the digest before it,
beginning with a salt; after it stands the SHA-1 of the password and the plain key.
"""

from __future__ import annotations

import hmac
import struct
from hashlib import sha1
from typing import Final, NamedTuple

from ottla.security.tls.der import OCTET_STRING, SEQUENCE, first, object_id

MAGIC: Final = b"\xfe\xed\xfe\xed"
PRIVATE_KEY: Final = 1
CERTIFICATE: Final = 2
KEY_PROTECTION: Final = "1.3.6.1.4.1.42.2.17.1.1"
DIGEST_BYTES: Final = 20
ENTRIES_MAX: Final = 10_000
_SECRET: Final = b"Mighty Aphrodite"  # part of the format: it keeps digests of stores apart
_U32: Final = struct.Struct(">I")


class BadKeyStore(ValueError):
    """The store is damaged, or the password is wrong."""


class KeyEntry(NamedTuple):
    """A private key, encrypted, and its certificates in DER, the key's own first."""

    alias: str
    encrypted: bytes
    chain: tuple[bytes, ...]


class KeyStore(NamedTuple):
    keys: tuple[KeyEntry, ...]
    certificates: tuple[bytes, ...]


def read(data: bytes, password: str | None) -> KeyStore:
    """Every entry. Without a password the digest is not checked, as keytool allows."""
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if password is not None:
        expected = sha1(_utf16(password) + _SECRET + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(expected, digest):
            raise BadKeyStore("wrong password, or the file is damaged")
    reader = _Reader(body)
    reader.take(len(MAGIC))
    version, count = reader.u32(), reader.u32()
    if version not in (1, 2) or count > ENTRIES_MAX:
        raise BadKeyStore(f"unexpected version {version} or number of entries {count}")
    keys: list[KeyEntry] = []
    certificates: list[bytes] = []
    for _ in range(count):
        tag, alias = reader.u32(), reader.text()
        reader.take(8)  # when it was made
        if tag == PRIVATE_KEY:
            encrypted = reader.take(reader.u32())
            length = reader.u32()
            if length > ENTRIES_MAX:
                raise BadKeyStore(f"unexpected length {length} of a certificate chain")
            chain = tuple(reader.certificate(version) for _ in range(length))
            keys.append(KeyEntry(alias, encrypted, chain))
        elif tag == CERTIFICATE:
            certificates.append(reader.certificate(version))
        else:
            raise BadKeyStore(f"unexpected kind of entry {tag}")
    return KeyStore(tuple(keys), tuple(certificates))


def private_key(entry: KeyEntry, password: str) -> bytes:
    """The key of an entry as PKCS #8 in DER."""
    algorithm, data = first(entry.encrypted).expect(SEQUENCE).parts()
    identifier = object_id(algorithm.parts()[0].value)
    if identifier != KEY_PROTECTION:
        raise BadKeyStore(f"key {entry.alias}: unexpected encryption {identifier}")
    protected = data.expect(OCTET_STRING).value
    salt, check = protected[:DIGEST_BYTES], protected[-DIGEST_BYTES:]
    encrypted = protected[DIGEST_BYTES:-DIGEST_BYTES]
    secret = _utf16(password)
    stream = bytearray()
    digest = salt
    while len(stream) < len(encrypted):
        digest = sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise BadKeyStore(f"key {entry.alias}: wrong key password")
    return plain


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._data):
            raise BadKeyStore("the file is cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def u32(self) -> int:
        number: int = _U32.unpack(self.take(4))[0]
        return number

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2), "big")).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.text()  # its type, X.509
        return self.take(self.u32())
