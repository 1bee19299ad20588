"""Distinguished names as Java writes them, and the rules that map them."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.security.tls.der import BadDer
from ottla.security.tls.names import parse_rules, principal_name, subject_of

# What Java prints for the certificates below (X500Principal.getName()).
JAVA = [
    ("CN=alice,OU=People,O=Example,L=Berlin,ST=B,C=DE", None),
    ('CN="a, b",O=x', "CN=a\\, b,O=x"),
    ("EMAILADDRESS=a@b,CN=x", "1.2.840.113549.1.9.1=#16036140 62,CN=x".replace(" ", "")),
    ("CN=Zoë", None),
    ("UID=u1,DC=example,DC=com", None),
]


@pytest.mark.skipif(shutil.which("keytool") is None, reason="no Java")
@pytest.mark.spec("SEC-03")
@pytest.mark.parametrize(("name", "expected"), JAVA)
def test_a_name_is_written_as_java_writes_it(
    name: str, expected: str | None, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    arguments = ["-alias", "a", "-storetype", "PKCS12", "-keystore", str(store)]
    arguments += ["-storepass", "hunter2"]
    make = ["-genkeypair", "-keyalg", "EC", "-dname", name]
    subprocess.run(
        ["keytool", "-J-Dsun.jnu.encoding=UTF-8", "-J-Dfile.encoding=UTF-8", *make, *arguments],
        check=True,
        capture_output=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    exported = subprocess.run(
        ["keytool", "-exportcert", "-rfc", *arguments], check=True, capture_output=True
    )
    certificate = ssl.PEM_cert_to_DER_cert(exported.stdout.decode())
    assert subject_of(certificate) == (expected or name)


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x04\x01x"])
def test_bytes_that_are_no_certificate_are_refused(data: bytes) -> None:
    with pytest.raises((BadDer, IndexError)):
        subject_of(data)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        ("", "CN=alice", "CN=alice"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=svc,OU=ServiceUsers,O=x", "svc"),
        ("RULE:^CN=(.*?),.*$/$1/L", "CN=Alice,O=x", "alice"),
        ("RULE:^CN=(.*?),.*$/$1@x/U,DEFAULT", "CN=bob,O=x", "BOB@X"),
        ("RULE:^CN=(.*?),OU=A.*$/$1/, RULE:^CN=(.*?),OU=B.*$/b-$1/,DEFAULT", "CN=c,OU=B", "b-c"),
        ("RULE:^CN=x$/x/", "CN=y", None),
    ],
)
def test_the_first_rule_that_matches_makes_the_principal(
    rules: str, name: str, expected: str | None
) -> None:
    assert principal_name(parse_rules(rules), name) == expected


@pytest.mark.parametrize("text", ["NONSENSE", "RULE:x", "RULE:(/x/", "RULE:x/$2/", "DEFAULT x"])
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(text)
