"""A broker with a listener for every cell: Ottla or Apache Kafka, with the same settings.

Owns: the broker's process, its KDC, and the files of certificates, tokens and keys. Every topic and
group is open except `theirs`, which only User:them may use.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

import ottla
from ottla import AclRule
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.client.admin.tokens import DelegationToken
from tests.cluster.process import wait_for
from tests.fakes.certificates import certificates
from tests.interop.security.cells import (
    BEARER,
    EXPIRED_CERTIFICATE,
    EXPIRED_TOKEN,
    KERBEROS,
    MTLS,
    NO_CERTIFICATE,
    NO_RULE,
    PLAIN,
    SCRAM_256,
    SCRAM_512,
    TLS,
    TOKEN,
    UNKNOWN_USER,
    UNTRUSTED,
    WRONG_HOST,
    WRONG_PASSWORD,
    Access,
    Cell,
    Job,
)
from tests.kdc import SERVICE, Realm, kerberos_realm
from tools import nodes

MODULES: Final = "org.apache.kafka.common.security"
PLAIN_MODULE: Final = f"{MODULES}.plain.PlainLoginModule"
SCRAM_MODULE: Final = f"{MODULES}.scram.ScramLoginModule"
BEARER_MODULE: Final = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"
VALIDATOR: Final = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
USER, PASSWORD = "alice", "alice-secret"
OPEN, THEIRS = "open", "theirs"
LISTENERS: Final = ("TLS", "MTLS", "SASL", "EXPIRED", "ELSEWHERE")
WAIT_S: Final = 30
ISSUER: Final = "https://issuer.example.com"


class Site(NamedTuple):
    ports: Mapping[str, int]
    folder: Path
    realm: Realm
    tokens: Mapping[str, DelegationToken]

    def job(self, cell: Cell) -> Job:
        access = self.access(cell.mechanism)._replace(**self._fault(cell.mechanism, cell.fault))
        refused = cell.fault == NO_RULE
        name = f"{cell.client}-{cell.mechanism}-{cell.fault}".replace(" ", "-")
        return Job(
            cell,
            access,
            topic=THEIRS if refused else OPEN,
            group=THEIRS if refused else name,
            value=name,
        )

    def access(self, mechanism: str) -> Access:
        """That of a client which is let in."""
        authority = self.folder / "ca.pem"
        if mechanism in (TLS, MTLS):
            certificate = self.folder / "alice.pem" if mechanism == MTLS else None
            return Access(self._address(mechanism.upper()), "SSL", authority, certificate)
        access = Access(self._address("SASL"), "SASL_SSL", authority, mechanism=mechanism)
        if mechanism == TOKEN:
            return access._replace(mechanism=SCRAM_256, **_login_by(self.tokens["valid"]))
        if mechanism == BEARER:
            return access._replace(bearer=self.folder / "token.jwt")
        if mechanism == KERBEROS:
            return access._replace(kerberos=self.realm.jaas(USER), keytab=self.realm.keytab(USER))
        return access._replace(user=USER, password=PASSWORD)

    def _fault(self, mechanism: str, fault: str) -> dict[str, Any]:
        """What is different of a client with this fault."""
        if mechanism == MTLS:
            files = {
                NO_CERTIFICATE: None,
                UNTRUSTED: self.folder / "stranger.pem",
                EXPIRED_CERTIFICATE: self.folder / "expired.pem",
            }
            return {"certificate": files[fault]} if fault in files else {}
        if fault == EXPIRED_TOKEN and mechanism == TOKEN:
            return _login_by(self.tokens["expired"])
        changes: dict[str, dict[str, Any]] = {
            UNTRUSTED: {"authority": self.folder / "other.pem"},
            EXPIRED_CERTIFICATE: {"bootstrap": self._address("EXPIRED")},
            WRONG_HOST: {"bootstrap": self._address("ELSEWHERE")},
            WRONG_PASSWORD: {"password": "d3Jvbmc="},
            UNKNOWN_USER: {"user": "nobody"},
            EXPIRED_TOKEN: {"bearer": self.folder / "expired.jwt"},
        }
        return changes.get(fault, {})

    def _address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"


@contextmanager
def secure_site(folder: Path, kind: str) -> Iterator[Site]:
    """A running broker, of `ottla` or `kafka`, with users, ACLs and tokens."""
    ports = dict(zip(LISTENERS, nodes.free_ports(len(LISTENERS)), strict=True))
    listeners = [f"{name}://localhost:{port}" for name, port in ports.items()]
    write_files(folder)
    (folder / "kdc").mkdir()
    with ExitStack() as stack:
        realm = stack.enter_context(kerberos_realm(folder / "kdc", USER))
        stack.enter_context(ticket(realm, folder))
        settings = broker_settings(folder, realm)
        if kind == "ottla":
            settings["sasl.oauthbearer.allowed.urls"] = key_set(folder)
            start = nodes.ottla(folder / "broker", settings, listeners=listeners)
        else:
            settings["listener.security.protocol.map"] += ",CONTROLLER:PLAINTEXT"
            stack.enter_context(
                variable("JAVA_TOOL_OPTIONS", " ".join(java_options(folder, realm)))
            )
            start = nodes.kafka(
                folder / "broker", settings, listeners=listeners, options=nodes.QUICK_JVM
            )
        node = stack.enter_context(start)
        site = Site(ports, folder, realm, {})
        yield site._replace(tokens=prepare(node.bootstrap, site))


def broker_settings(folder: Path, realm: Realm) -> dict[str, str]:
    """Kafka's names, for either broker."""
    protocols = {name: "SASL_SSL" if name == "SASL" else "SSL" for name in LISTENERS}
    sasl = "listener.name.sasl"
    return {
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}"
            for name, protocol in {"PLAINTEXT": "PLAINTEXT", **protocols}.items()
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.location": str(folder / "expired.pem"),
        "listener.name.elsewhere.ssl.keystore.location": str(folder / "elsewhere.pem"),
        f"{sasl}.sasl.enabled.mechanisms": ",".join(
            (PLAIN, SCRAM_256, SCRAM_512, BEARER, KERBEROS)
        ),
        f"{sasl}.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_{USER}="{PASSWORD}";',
        f"{sasl}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{sasl}.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        f"{sasl}.oauthbearer.sasl.jaas.config": f"{BEARER_MODULE} required;",
        f"{sasl}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        f"{sasl}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": key_set(folder),
        f"{sasl}.oauthbearer.sasl.oauthbearer.expected.audience": "kafka",
        f"{sasl}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{sasl}.gssapi.sasl.jaas.config": realm.jaas(SERVICE),
        "sasl.kerberos.service.name": "kafka",
        "delegation.token.secret.key": "a key of tokens",
        "connection.failed.authentication.delay.ms": "20",
        "group.initial.rebalance.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }


def java_options(folder: Path, realm: Realm) -> list[str]:
    """System properties of a virtual machine that uses Kerberos and tokens from files."""
    files = [key_set(folder), *(token_file(folder / name) for name in ("token.jwt", "expired.jwt"))]
    return [
        f"-Djava.security.krb5.conf={realm.krb5_conf}",
        "-Dsun.security.krb5.disableReferrals=true",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(files)}",
    ]


def key_set(folder: Path) -> str:
    return token_file(folder / "keys.json")


def token_file(path: Path) -> str:
    return f"file://{path}"


def write_files(folder: Path) -> None:
    made = certificates()
    for name, authority in (("ca", made.authority), ("other", made.other_authority)):
        (folder / f"{name}.pem").write_bytes(authority.certificate_pem())
    for name in ("broker", "alice", "stranger", "expired", "elsewhere"):
        issued = getattr(made, name)
        (folder / f"{name}.pem").write_bytes(issued.key_pem() + issued.certificate_pem())
    key, now_s = ec.generate_private_key(ec.SECP256R1()), int(time.time())
    public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
    entry = {**public, "kid": "1", "alg": "ES256", "use": "sig"}
    (folder / "keys.json").write_text(json.dumps({"keys": [entry]}))
    for name, expires_s in (("token", now_s + 7_200), ("expired", now_s - 3_600)):
        claims = {
            "sub": USER, "scope": "kafka", "iss": ISSUER, "aud": "kafka",
            "iat": expires_s - 7_200, "exp": expires_s,
        }  # fmt: skip
        text = jwt.encode(claims, key, algorithm="ES256", headers={"kid": "1"})
        (folder / f"{name}.jwt").write_text(text)


def prepare(bootstrap: str, site: Site) -> dict[str, DelegationToken]:
    """Topics, users, ACLs and tokens, by our admin."""
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        for topic in (OPEN, THEIRS):
            admin.create_topic(topic)
        for mechanism in (SCRAM_256, SCRAM_512):  # Kafka refuses both in one request
            login = ScramUpsertion(USER, PASSWORD, mechanism)
            admin.alter_user_scram_credentials([login]).all()
        rules = [AclRule.allow("User:them", "all", kind, THEIRS) for kind in ("topic", "group")]
        admin.create_acls(rules).all()
    with ottla.Admin(config=our_config(site.access(SCRAM_256))) as admin:
        tokens = {name: admin.create_delegation_token() for name in ("valid", "expired")}

        def are_known(*names: str) -> bool:
            known = {token.id for token in admin.describe_delegation_tokens()}
            return known == {tokens[name].id for name in names}

        wait_for(lambda: are_known("valid", "expired"), WAIT_S, "tokens")  # not at once in Kafka
        admin.expire_delegation_token(tokens["expired"].hmac)
        wait_for(lambda: are_known("valid"), WAIT_S, "the end of a token")
    return tokens


def our_config(access: Access) -> dict[str, str]:
    """The settings of our clients."""
    return {"bootstrap.servers": access.bootstrap, **properties(access)} | (
        {"sasl.oauthbearer.token": access.bearer.read_text()} if access.bearer is not None else {}
    )


def properties(access: Access) -> dict[str, str]:
    """The settings of Java's clients and ours; OAUTHBEARER lacks its token."""
    texts = {
        "security.protocol": access.protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(access.authority),
    }
    if access.certificate is not None:
        texts |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(access.certificate),
        }
    if access.mechanism is None:
        return texts
    texts["sasl.mechanism"] = access.mechanism
    if access.kerberos is not None:
        texts |= {"sasl.kerberos.service.name": "kafka", "sasl.jaas.config": access.kerberos}
    elif access.bearer is not None:
        texts["sasl.jaas.config"] = f"{BEARER_MODULE} required;"
    else:
        module = PLAIN_MODULE if access.mechanism == PLAIN else SCRAM_MODULE
        more = ' tokenauth="true"' if access.is_token else ""
        login = f'username="{access.user}" password="{access.password}"'
        texts["sasl.jaas.config"] = f"{module} required {login}{more};"
    return texts


def _login_by(token: DelegationToken) -> dict[str, Any]:
    return {"user": token.id, "password": token.hmac, "is_token": True}


@contextmanager
def ticket(realm: Realm, folder: Path) -> Iterator[None]:
    """A ticket in a cache that this process and the programs it starts use."""
    with variable("KRB5CCNAME", f"FILE:{folder / 'tickets'}"):
        command = ["kinit", "-k", "-t", str(realm.keytab(USER)), USER]
        subprocess.run(command, check=True, capture_output=True)
        yield


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
