"""GSSAPI by a real KDC: both sides of the login, the names, and what is said when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.model.errors import AuthenticationFailed, UserError
from ottla.security.sasl.exchange import SENTENCE, LoginFailed, Step
from ottla.security.sasl.kerberos import Acceptor, KerberosClient, KerberosModule, KerberosServer
from tests.kdc import NAME, SERVICE, Realm, kerberos_realm, need_gssapi

pytestmark = pytest.mark.spec("SEC-05")


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    need_gssapi()
    with kerberos_realm(tmp_path_factory.mktemp("kdc"), "alice", "kafka/other") as realm:
        yield realm


def module(realm: Realm, principal: str, keytab: Path | None = None) -> KerberosModule:
    options = {
        "useKeyTab": "true",
        "keyTab": str(keytab or realm.keytab(principal)),
        "principal": principal,
    }
    return KerberosModule.of(options, "kafka")


def acceptor(realm: Realm, *rules: str, principal: str = SERVICE) -> Acceptor:
    return Acceptor(module(realm, principal), rules or ("DEFAULT",))


async def log_in(client: KerberosClient, server: KerberosServer) -> Step:
    token: bytes | None = await client.first()
    step = Step(b"")
    while token is not None:
        step = server.evaluate(token)
        token = await client.evaluate(step.token)
    return step


@pytest.mark.real_loop
async def test_a_client_with_a_key_logs_in_as_the_user_of_its_principal(realm: Realm) -> None:
    for _ in range(2):  # the second ticket comes from memory
        client = KerberosClient(module(realm, "alice"), "localhost")
        step = await log_in(client, KerberosServer(acceptor(realm)))
        assert (step.user, step.token) == ("alice", b"")


@pytest.mark.real_loop
async def test_rules_decide_who_a_principal_is_and_nobody_else_is_let_in(realm: Realm) -> None:
    client = KerberosClient(module(realm, "alice"), "localhost")
    rules = "RULE:[1:$1@$0](.*@OTTLA.TEST)s/@.*//U"
    assert (await log_in(client, KerberosServer(acceptor(realm, rules)))).user == "ALICE"
    client = KerberosClient(module(realm, "alice"), "localhost")
    with pytest.raises(LoginFailed, match=SENTENCE) as refused:
        await log_in(client, KerberosServer(acceptor(realm, "RULE:[2:$1]")))
    assert refused.value.user == f"alice@{NAME}"
    assert "no rule" in refused.value.reason


@pytest.mark.real_loop
async def test_a_ticket_for_another_service_is_refused(realm: Realm) -> None:
    client = KerberosClient(module(realm, "alice"), "localhost")
    with pytest.raises(LoginFailed, match=SENTENCE):
        await log_in(client, KerberosServer(acceptor(realm, principal="kafka/other")))


@pytest.mark.parametrize("token", [b"", b"garbage", b"\x60\x82" + b"\0" * 600])
def test_what_is_no_ticket_is_refused(realm: Realm, token: bytes) -> None:
    with pytest.raises(LoginFailed, match=SENTENCE):
        KerberosServer(acceptor(realm)).evaluate(token)


@pytest.mark.real_loop
async def test_a_repeated_ticket_without_its_key_is_refused(realm: Realm) -> None:
    client = KerberosClient(module(realm, "alice"), "localhost")
    overheard = await client.first()
    thief = KerberosServer(acceptor(realm))
    thief.evaluate(overheard)
    thief.evaluate(b"")
    with pytest.raises(LoginFailed, match=SENTENCE):
        thief.evaluate(b"\x01\0\0\0alice")


@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("change", "host", "text"),
    [
        ({}, "elsewhere", "KDC does not know kafka/elsewhere: check sasl.kerberos.service.name"),
        ({"principal": "nobody"}, "localhost", "ticket for nobody .*No key table entry"),
        ({"keyTab": "/no/such.keytab"}, "localhost", "keyTab=/no/such.keytab: No such file"),
        ({"useKeyTab": "false"}, "localhost", "no Kerberos ticket of alice.*run kinit"),
    ],
)
async def test_the_client_says_what_is_wrong(
    realm: Realm, change: dict[str, str], host: str, text: str
) -> None:
    options = {"useKeyTab": "true", "keyTab": str(realm.keytab("alice")), "principal": "alice"}
    options |= {"useTicketCache": "true", "ticketCache": "/no/such.cache", **change}
    client = KerberosClient(KerberosModule.of(options, "kafka"), host)
    with pytest.raises(AuthenticationFailed, match=text):
        await client.first()


def test_a_broker_without_usable_keys_is_told_before_it_starts(realm: Realm) -> None:
    with pytest.raises(UserError, match="No key table entry found for kafka/nowhere"):
        Acceptor(module(realm, "kafka/nowhere", realm.keytab(SERVICE)), ("DEFAULT",))
    with pytest.raises(UserError, match=r"keyTab=/no/keys: No such file"):
        Acceptor(module(realm, SERVICE, Path("/no/keys")), ("DEFAULT",))
    with pytest.raises(UserError, match="useKeyTab=true"):
        Acceptor(KerberosModule.of({}, "kafka"), ("DEFAULT",))


@pytest.mark.parametrize(
    ("options", "service", "text"),
    [
        ({}, None, "needs sasl.kerberos.service.name"),
        ({"serviceName": "kafka"}, "other", "the JAAS configuration has serviceName=kafka"),
    ],
)
def test_the_service_must_be_named_once(
    options: dict[str, str], service: str | None, text: str
) -> None:
    with pytest.raises(UserError, match=text):
        KerberosModule.of(options, service)
    assert KerberosModule.of({"serviceName": "kafka"}, None).service == "kafka"
