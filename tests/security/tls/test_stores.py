"""Key stores and trust stores, in each format, as keytool and others write them."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ottla.config.client import AdminConfig
from ottla.config.security import SecuritySettings
from ottla.config.tls import TlsSettings
from ottla.model.errors import UserError
from ottla.security.tls import jks
from ottla.security.tls.authority import issue
from ottla.security.tls.contexts import ClientTls
from ottla.security.tls.stores import key_material, trusted_certificates
from tests.fakes.certificates import certificates, client_tls, pem, server_tls

needs_keytool = pytest.mark.skipif(shutil.which("keytool") is None, reason="no Java")


def settings(**texts: str) -> TlsSettings:
    return AdminConfig.from_options(texts)


def keytool(*arguments: str) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True)


def java_store(path: Path, kind: str, *, key_password: str | None = None) -> None:
    keytool(
        "-genkeypair", "-alias", "broker", "-keyalg", "RSA", "-keysize", "2048",
        "-dname", "CN=localhost", "-ext", "SAN=dns:localhost", "-storetype", kind,
        "-keystore", str(path), "-storepass", "hunter2", "-keypass", key_password or "hunter2",
    )  # fmt: skip


@needs_keytool
@pytest.mark.parametrize(
    ("kind", "key_password"), [("JKS", None), ("JKS", "another"), ("PKCS12", None)]
)
def test_a_key_store_of_keytool_is_read_whatever_its_name_says(
    kind: str, key_password: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "server.keystore.jks"
    java_store(path, kind, key_password=key_password)
    texts = {"ssl.keystore.location": str(path), "ssl.keystore.password": "hunter2"}
    if key_password:
        texts["ssl.key.password"] = key_password
    assert server_tls(texts).expires_s > 0
    material = key_material(AdminConfig.from_options({}, texts))
    assert material is not None
    assert "PRIVATE KEY" in material.key
    assert "hidden" in repr(material)


@needs_keytool
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_trust_store_of_keytool_is_read(kind: str, tmp_path: Path) -> None:
    path, authority = tmp_path / "truststore", tmp_path / "ca.pem"
    authority.write_bytes(certificates().authority.certificate_pem())
    keytool(
        "-importcert", "-noprompt", "-alias", "ca", "-file", str(authority), "-storetype", kind,
        "-keystore", str(path), "-storepass", "hunter2",
    )  # fmt: skip
    location = {"ssl_truststore_location": str(path)}
    text = trusted_certificates(settings(**location, ssl_truststore_password="hunter2"))
    assert text is not None
    expected = ssl.PEM_cert_to_DER_cert(authority.read_text())
    assert ssl.PEM_cert_to_DER_cert(text) == expected
    with pytest.raises(UserError, match=r"check ssl\.truststore\.password") as mistake:
        trusted_certificates(settings(**location, ssl_truststore_password="wrong-secret"))
    assert "wrong-secret" not in str(mistake.value)


@needs_keytool
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_wrong_password_is_named_and_not_shown(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "keystore"
    java_store(path, kind)
    for password in ("wrong-secret", ""):
        texts = {"ssl.keystore.location": str(path)}
        if password:
            texts["ssl.keystore.password"] = password
        with pytest.raises(UserError, match=r"ssl\.keystore") as mistake:
            key_material(AdminConfig.from_options({}, texts))
        assert "wrong-secret" not in str(mistake.value)


def test_pem_is_read_from_settings_and_files_even_without_line_breaks(tmp_path: Path) -> None:
    made = certificates().broker
    whole = made.key_pem().decode() + made.certificate_pem().decode()
    file = tmp_path / "broker.pem"
    file.write_text(whole)
    server_tls({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)})
    server_tls(pem(made))
    one_line = {name: text.replace("\n", " ") for name, text in pem(made).items()}
    server_tls(one_line)


def test_an_encrypted_pem_key_needs_its_password() -> None:
    from cryptography.hazmat.primitives import serialization

    made = certificates().broker
    encrypted = made.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    ).decode()
    texts = {**pem(made), "ssl.keystore.key": encrypted}
    server_tls({**texts, "ssl.key.password": "hunter2"})
    with pytest.raises(UserError, match=r"set ssl\.key\.password"):
        server_tls(texts)
    with pytest.raises(UserError, match=r"wrong ssl\.key\.password") as mistake:
        server_tls({**texts, "ssl.key.password": "wrong-secret"})
    assert "wrong-secret" not in str(mistake.value)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({}, "needs a key"),
        ({"ssl.keystore.location": "/no/such"}, "/no/such: No such file"),
        ({"ssl.keystore.key": "x"}, "must be set together"),
        ({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "y"}, "as PEM"),
        ({"ssl.cipher.suites": "TLS_RSA_WITH_NULL_MD5"}, "unknown or unsafe cipher suite"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1"}, "at least one of TLSv1.2, TLSv1.3"),
    ],
)
def test_a_setting_that_is_wrong_is_named(texts: dict[str, str], expected: str) -> None:
    base = (
        {} if any("keystore" in name for name in texts) or not texts else pem(certificates().broker)
    )
    with pytest.raises(UserError, match=expected):
        server_tls({**base, **texts})


def test_a_key_that_is_not_the_certificates_is_refused() -> None:
    made = certificates()
    texts = {**pem(made.broker), "ssl.keystore.key": made.alice.key_pem().decode()}
    with pytest.raises(UserError, match="does not belong to the certificate"):
        server_tls(texts)


BEGIN: Final = b"-----BEGIN CERTIFICATE-----\n"
DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "a file that is being written": lambda text: text[: text.index(b"-----END CERT") - 30],
    "a byte that is no text": lambda text: text.replace(BEGIN, BEGIN + b"\xff"),
    "a character too many": lambda text: text.replace(BEGIN, BEGIN + b"A"),
    "a length that is too large": lambda text: text.replace(BEGIN + b"MII", BEGIN + b"MIJ"),
    "nothing between the lines": lambda text: re.sub(
        rb"(?s)(BEGIN CERTIFICATE-----\n).*?(-----END CERT)", rb"\1\2", text
    ),
    "nothing": lambda text: b"",
}


@pytest.mark.spec("SEC-01")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_what_was_in_force_stays(damage: str, tmp_path: Path) -> None:
    """Any other error would end the loop that looks for new certificates, and the broker."""
    made = certificates()
    file = tmp_path / "broker.pem"
    good = made.broker.certificate_pem() + made.broker.key_pem()
    file.write_bytes(good)
    texts = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    tls = server_tls(texts)
    expires_s = tls.expires_s
    assert expires_s > 0
    file.write_bytes(DAMAGES[damage](good))
    with pytest.raises(UserError, match=r"ssl\.keystore"):
        tls.refresh(SecuritySettings.parse(texts))
    assert tls.expires_s == expires_s
    file.write_bytes(DAMAGES[damage](made.authority.certificate_pem()))
    trusting = settings(ssl_truststore_type="PEM", ssl_truststore_location=str(file))
    with pytest.raises(UserError, match=r"ssl\.truststore"):
        ClientTls(trusting)


def test_a_certificate_that_cannot_be_used_does_not_change_the_expiry_that_is_shown() -> None:
    made = certificates()
    tls = server_tls(pem(made.broker))
    before_s = tls.expires_s
    other = issue(made.authority, "later", time.time(), days=900)
    wrong = {**pem(other), "ssl.keystore.key": made.alice.key_pem().decode()}
    with pytest.raises(UserError, match="does not belong"):
        tls.refresh(SecuritySettings.parse(wrong))
    assert tls.expires_s == before_s


@pytest.mark.parametrize("length", [0, 3, 12, 40])
def test_a_store_that_is_cut_off_is_refused(length: int) -> None:
    data = jks.MAGIC + bytes(100)
    with pytest.raises((jks.BadKeyStore, ValueError)):
        jks.read(data[:length], "hunter2")


def test_clients_trust_the_system_when_no_store_is_named() -> None:
    assert trusted_certificates(settings()) is None
    client_tls({})
