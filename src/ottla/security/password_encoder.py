"""Passwords among the dynamic settings in ZooKeeper, encrypted as Apache Kafka 3.9 does it.

Owns: the text of an encrypted password (`key:value`, separated by commas) and the derivation of its
key from `password.encoder.secret`. Never logs a value, encrypted or not.

Decryption needs the package cryptography (the extra `security`), imported when it is used.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from ottla.config.zookeeper import CIPHERS, KEY_FACTORIES, ZooKeeperSettings

SALT_BYTES: Final = 256
ITERATIONS_MAX: Final = 1_000_000
BLOCK_BYTES: Final = 16
NONCE_BYTES: Final = 12
CBC, GCM = CIPHERS
_DIGESTS: Final = dict(zip(KEY_FACTORIES, ("sha512", "sha256", "sha1"), strict=True))
_MARK: Final = "encryptedPassword:"

Overrides = Mapping[str, str]
RandomBytes = Callable[[int], bytes]


class CannotDecode(ValueError):
    """Why a password stays unknown; the text has nothing of it."""


class PasswordEncoder(NamedTuple):
    """`secrets`: the one to encode with first, then older ones; none: nothing is encrypted."""

    secrets: tuple[str, ...]
    digest: str
    cipher: str
    key_bits: int
    iterations: int
    random_bytes: RandomBytes

    @classmethod
    def of(cls, settings: ZooKeeperSettings, random_bytes: RandomBytes) -> PasswordEncoder:
        current, old = settings.password_encoder_secret, settings.password_encoder_old_secret
        return cls(
            tuple(secret for secret in (current, old) if secret),
            settings.password_encoder_keyfactory_algorithm or KEY_FACTORIES[0],
            settings.password_encoder_cipher_algorithm,
            settings.password_encoder_key_length,
            settings.password_encoder_iterations,
            random_bytes,
        )

    def decode(self, text: str) -> str:
        """The password; CannotDecode says what is missing."""
        fields = dict(part.partition(":")[::2] for part in text.split(","))
        if not self.secrets:
            raise CannotDecode("it is encrypted: set password.encoder.secret as in Apache Kafka")
        for secret in self.secrets:
            try:
                return _decrypt_text(secret, fields)
            except (KeyError, ValueError) as error:
                if isinstance(error, CannotDecode):
                    raise
        raise CannotDecode("password.encoder.secret is not the one that it was encrypted with")

    def encode(self, text: str) -> str:
        """Encrypted, if there is a secret."""
        if not self.secrets or not text or is_encoded(text):
            return text
        salt = self.random_bytes(SALT_BYTES)
        key = _key(self.secrets[0], self.digest, salt, self.iterations, self.key_bits)
        is_gcm = self.cipher == GCM
        vector = self.random_bytes(NONCE_BYTES if is_gcm else BLOCK_BYTES)
        fields = {
            "keyFactoryAlgorithm": self.digest,
            "cipherAlgorithm": self.cipher,
            "keyLength": str(self.key_bits),
            "salt": _base64(salt),
            "iterations": str(self.iterations),
            "encryptedPassword": _base64(_encrypt(self.cipher, key, vector, text.encode())),
            "passwordLength": str(len(text)),
            "initializationVector": _base64(vector),
        }
        if is_gcm:
            fields["authenticationTagLength"] = "128"
        return ",".join(f"{name}:{value}" for name, value in fields.items())


def is_encoded(text: str) -> bool:
    return _MARK in text and "initializationVector:" in text


def _decrypt_text(secret: str, fields: Mapping[str, str]) -> str:
    digest, cipher = fields["keyFactoryAlgorithm"], fields["cipherAlgorithm"]
    iterations, bits = int(fields["iterations"]), int(fields["keyLength"])
    if digest not in _DIGESTS or cipher not in (CBC, GCM) or bits not in (128, 192, 256):
        raise CannotDecode(f"it is encrypted with {digest}, {cipher}, {bits} bits: not known here")
    if not 0 < iterations <= ITERATIONS_MAX:
        raise CannotDecode(f"{iterations} iterations; allowed are 1 to {ITERATIONS_MAX}")
    key = _key(secret, digest, base64.b64decode(fields["salt"]), iterations, bits)
    vector = base64.b64decode(fields["initializationVector"])
    password = _decrypt(cipher, key, vector, base64.b64decode(fields["encryptedPassword"])).decode()
    if len(password) != int(fields["passwordLength"]):
        raise ValueError("wrong length")
    return password


def _key(secret: str, digest: str, salt: bytes, iterations: int, bits: int) -> bytes:
    return hashlib.pbkdf2_hmac(_DIGESTS[digest], secret.encode(), salt, iterations, bits // 8)


def _encrypt(cipher: str, key: bytes, vector: bytes, data: bytes) -> bytes:
    _need_cryptography()
    from cryptography.hazmat.primitives import padding
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

    if cipher == GCM:
        return aead.AESGCM(key).encrypt(vector, data, None)
    padder = padding.PKCS7(BLOCK_BYTES * 8).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    padded = padder.update(data) + padder.finalize()
    return encryptor.update(padded) + encryptor.finalize()


def _decrypt(cipher: str, key: bytes, vector: bytes, data: bytes) -> bytes:
    _need_cryptography()
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives import padding
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

    if cipher == GCM:
        try:
            return aead.AESGCM(key).decrypt(vector, data, None)
        except InvalidTag:
            raise ValueError("wrong key") from None
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    unpadder = padding.PKCS7(BLOCK_BYTES * 8).unpadder()
    return unpadder.update(decryptor.update(data) + decryptor.finalize()) + unpadder.finalize()


def _need_cryptography() -> None:
    if find_spec("cryptography") is None:
        raise CannotDecode("it needs the package cryptography: pip install 'ottla[security]'")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
