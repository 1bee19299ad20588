"""Passwords that Apache Kafka 3.9 encrypted, and how others are said."""

from __future__ import annotations

import random

import pytest

from ottla.config.broker import BrokerConfig
from ottla.security.password_encoder import CannotDecode, PasswordEncoder, is_encoded

pytestmark = pytest.mark.spec("SEC-05")

PASSWORD = "pass, wörd:=x"
# Written by Kafka's own PasswordEncoder, with the secret "a secret".
CBC = (
    "initializationVector:xcAZduoX2tZXyfvM9LAyWQ==,"
    "keyLength:128,"
    "salt:cjlmAPcSYhesmoy5OQCJrzrgv32My+SV1qoQA1QgYuk9I1mN4qpmfDbGWijv7j90fEjzUcLWKZhMofaNb6v"
    "rdtXbTGnxfaqOauIBD09vM5Fh75gFksZS674bepw2mFlen+V3uBZ3cSl9hPrbf4FqzdMw7iRLhih8OzXfzjpAe5C"
    "QeIwFuGxwN9dLgys8bqe71V0eO+aJuR7Gv911cpy18i+LZSQqBQTXRFlYY19tdGuVMwT1e8/ObPrklzWpR6zf81F"
    "qPGA1ugvgKkVFLye+V1w/I/XTCPxJPEmf7SnTNaVyvUSQB+kI08I6LCC9JyOieqqMwRts0cn63pBtioQZpA==,"
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA512,"
    "cipherAlgorithm:AES/CBC/PKCS5Padding,"
    "iterations:4096,"
    "passwordLength:13,"
    "encryptedPassword:P/l4QcKAtIQlwOTNW9KAGw=="
)
GCM = (
    "initializationVector:eK1MYBzKrZd1XO7v,"
    "keyLength:128,"
    "salt:S2ASY6C4YFZxtFDktPk9x89gCjK+60oH4Mht0hUcv7IaNTIjeMuvLKb3SLlsqNvrzSWiwKud9yuj9PkwON0"
    "HaAN85pqb1+0MVnNlcYNU0loybjGzcgoEUv01T1FAYM9a9H/hq87RLUybOWKI91+YoAuCsQ0FVtnofGgbHwlIgxC"
    "T+nHu5epMgsn4bM9EZWiri/TPvayozY6EsVyN6LtcsRNh6fiZdUUg+FilBWlDo4zkqFcBTum6+ZySwI4VaTQQzl3"
    "eJxFm4SMzdjVI5f7AHqkf8bPBO6FtL/swbI7Q/5TX6s75dmaB/u4B7nHTNgrsl6/c2Yj/XqHY6KZy1wRA/A==,"
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA512,"
    "cipherAlgorithm:AES/GCM/NoPadding,"
    "authenticationTagLength:128,"
    "iterations:4096,"
    "passwordLength:13,"
    "encryptedPassword:UCXauXZII5wuH1NzhKk0AtGmscpnkdjIUzw+VI9P"
)


def encoder(**settings: str) -> PasswordEncoder:
    texts = {f"password.encoder.{name}".replace("_", "."): text for name, text in settings.items()}
    return PasswordEncoder.of(BrokerConfig.parse(texts), random.Random(1).randbytes)


@pytest.mark.parametrize("text", [CBC, GCM])
def test_what_kafka_encrypted_is_read_with_its_secret_also_with_the_one_before(text: str) -> None:
    assert encoder(secret="a secret").decode(text) == PASSWORD
    assert encoder(secret="new", old_secret="a secret").decode(text) == PASSWORD
    assert is_encoded(text)
    assert not is_encoded(PASSWORD)


@pytest.mark.parametrize("cipher", ["AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"])
@pytest.mark.parametrize("algorithm", ["", "PBKDF2WithHmacSHA1"])
def test_what_is_encrypted_is_read_again(cipher: str, algorithm: str) -> None:
    ours = encoder(
        secret="s", cipher_algorithm=cipher, keyfactory_algorithm=algorithm, key_length="256"
    )
    text = ours.encode(PASSWORD)
    assert is_encoded(text)
    assert PASSWORD not in text
    assert ours.decode(text) == PASSWORD
    assert ours.encode(text) == text, "once"
    assert encoder().encode(PASSWORD) == PASSWORD, "without a secret nothing is encrypted"


@pytest.mark.parametrize(
    ("settings", "text", "reason"),
    [
        ({}, CBC, "set password.encoder.secret"),
        ({"secret": "wrong"}, CBC, "is not the one that it was encrypted with"),
        ({"secret": "wrong"}, GCM, "is not the one that it was encrypted with"),
        (
            {"secret": "a secret"},
            CBC.replace("passwordLength:13", "passwordLength:12"),
            "not the one",
        ),
        (
            {"secret": "a secret"},
            CBC.replace("iterations:4096", "iterations:99999999"),
            "allowed are",
        ),
        ({"secret": "a secret"}, CBC.replace("AES/CBC", "DES/CBC"), "not known here"),
        ({"secret": "a secret"}, CBC.replace("salt:", "pepper:"), "is not the one"),
    ],
)
def test_what_cannot_be_read_is_said_without_the_value(
    settings: dict[str, str], text: str, reason: str
) -> None:
    with pytest.raises(CannotDecode, match=reason) as refused:
        encoder(**settings).decode(text)
    assert "P/l4QcKAtIQl" not in str(refused.value)
