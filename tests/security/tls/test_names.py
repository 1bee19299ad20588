"""Distinguished names as Java writes them, and the rules that map them."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from ottla.model.errors import UserError
from ottla.security.tls.der import BadDer, first
from ottla.security.tls.names import (
    distinguished_name,
    parse_rules,
    principal_name,
    subject_of,
)

# What Java prints for the certificates below (X500Principal.getName()).
JAVA = [
    ("CN=alice,OU=People,O=Example,L=Berlin,ST=B,C=DE", None),
    ('CN="a, b",O=x', "CN=a\\, b,O=x"),
    ("EMAILADDRESS=a@b,CN=x", "1.2.840.113549.1.9.1=#16036140 62,CN=x".replace(" ", "")),
    ("CN=Zoë", None),
    ("UID=u1,DC=example,DC=com", None),
    ('CN="a=b#c"', "CN=a\\=b\\#c"),
]
UTF8, PRINTABLE, TELETEX, IA5, GENERAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E


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


@pytest.mark.spec("SEC-03")
@pytest.mark.parametrize(
    ("tag", "value", "expected"),
    [
        (UTF8, b"a\0b", "CN=a\\00b"),
        (UTF8, b"  a b  ", "CN=\\ \\ a b\\ \\ "),
        (UTF8, b"#a;<b>+", "CN=\\#a\\;\\<b\\>\\+"),
        (UTF8, b"a \n", "CN=a \n"),
        (UTF8, b"\ra\r", "CN=\\\ra\\\r"),
        (PRINTABLE, b" ", "CN=\\ "),
        (IA5, b"a@b", "CN=a@b"),
        (TELETEX, "é".encode(), "CN=é"),
        (TELETEX, "é".encode("latin-1"), "CN=\ufffd"),
        (GENERAL, b"ab", "CN=ab"),
        (BMP, b"\0a\0b", "CN=\\00a\\00b"),
        (0x12, b"12", "CN=#12023132"),
        (0x1A, b"ab", "CN=#1a026162"),
        (0x1C, b"\0\0\0a", "CN=#1c0400000061"),
    ],
)
def test_every_kind_of_text_is_written_as_java_writes_it(
    tag: int, value: bytes, expected: str
) -> None:
    """What X500Principal.getName() of Java 17 returned for the same bytes."""
    text = bytes((tag, len(value))) + value
    attribute = b"\x30" + bytes((len(text) + 5,)) + b"\x06\x03\x55\x04\x03" + text
    relative = b"\x31" + bytes((len(attribute),)) + attribute
    name = first(b"\x30" + bytes((len(relative),)) + relative)
    assert distinguished_name(name) == expected


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x04\x01x"])
def test_bytes_that_are_no_certificate_are_refused(data: bytes) -> None:
    with pytest.raises((BadDer, IndexError)):
        subject_of(data)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
        ("", "CN=alice", None),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=svc,OU=ServiceUsers,O=x", "svc"),
        ("RULE:^CN=(.*?),.*$/$1/L", "CN=Alice,O=x", "alice"),
        ("RULE:^CN=(.*?),.*$/$1@x/U,DEFAULT", "CN=bob,O=x", "BOB@X"),
        ("RULE:^CN=(.*?),OU=A.*$/$1/, RULE:^CN=(.*?),OU=B.*$/b-$1/,DEFAULT", "CN=c,OU=B", "b-c"),
        ("RULE:^CN=x$/x/", "CN=y", None),
        # Of Kafka's SslPrincipalMapperTest.
        ("RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/", "CN=xyz,O=a", "xyz"),
        ("RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/", "CN=DEFAULT", None),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "cN=duke,OU=JavaSoft", "DUKE"),
        ("RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U", "cn=d,ou=s,dc=m,dc=c", "D@S"),
        # What Kafka 4.3.1 returned for the same rule and name.
        (r"RULE:^CN=(.*?),.*$/team\/$1/", "CN=bob,O=x", "team/bob"),
        (r"RULE:^CN=(.*?),.*$/a\$1/", "CN=bob,O=x", "a$1"),
        (r"RULE:^CN=\/(.*?),.*$/$1/", "CN=/bob,O=x", "bob"),
        ("RULE:^CN=(.*?),.*$/$2/", "CN=bob,O=x", "$2"),
        ("RULE:^CN=(.*?),.*$/$10/", "CN=bob,O=x", "bob0"),
        ("RULE:^CN=(?<name>.*?),.*$/${name}/", "CN=bob,O=x", "bob"),
        ("RULE:.*/x/", "CN=bob,O=x", "xx"),
        ("RULE:CN=(.*?)(,.*)?/$1/", "CN=bob,O=x", "bob,O=x"),
        (",DEFAULT,", "CN=bob", "CN=bob"),
        ("RULE:^CN=a$/a/\nDEFAULT", "CN=bob", "CN=bob"),
    ],
)
def test_the_first_rule_that_matches_makes_the_principal(
    rules: str, name: str, expected: str | None
) -> None:
    assert principal_name(parse_rules(rules), name) == expected


@pytest.mark.parametrize(
    "text",
    [
        "NONSENSE", "default", "DEFAULT/L", "DEFAULT x", "RULE:x", "RULE:(/x/", "RULE:x/$1",
        "rule:x/x/", "RULE:x/x/LU", "RULE:x/x/L/U", "RULE:x/x/L DEFAULT", "RULE:x/$/", "RULE:x/$y/",
        "RULE:x/${y}/",
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(text)
