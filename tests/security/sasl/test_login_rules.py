"""What a login must not get around: the agreed nonce, constant time, the rules for tokens."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.client import ClientConfig
from ottla.model.errors import AuthenticationFailed, UserError
from ottla.security.sasl.client import ClientLogin
from ottla.security.sasl.exchange import LoginFailed, Step
from ottla.security.sasl.plain import PlainServer
from ottla.security.sasl.scram import (
    HASHES,
    Credential,
    ScramCredentials,
    ScramServer,
    salted_password,
)
from ottla.security.sasl.server import ListenerSettings, SaslServer
from tests.fakes.counted_calls import counted_calls
from tests.fakes.manual_time import ManualClock
from tests.fakes.scram_messages import NO_BINDING, proved
from tests.fakes.token_issuer import SigningKey

NOW_S = time.time()
KEY = SigningKey(now_s=NOW_S)
FIRST = b"n,,n=alice,r=clientnonce"


def scram_server(mechanism: str) -> ScramServer:
    """With the user alice, whose password is `secret`."""
    users = ScramCredentials()
    salted = salted_password(mechanism, "secret", b"salt", 4_096)
    made = Credential.of_salted(mechanism, salted, b"salt", 4_096)
    users.set_user("alice", {mechanism: str(made)})
    return ScramServer(mechanism, users.of(mechanism), "servernonce", users.unknown(mechanism))


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(
    ("nonce", "binding"),
    [
        ("clientnonceservernonceX", NO_BINDING),
        ("clientnonceservernonc", NO_BINDING),
        ("clientnonce", NO_BINDING),
        ("servernonce", NO_BINDING),
        ("othernonceservernonce", NO_BINDING),
        (None, "eSws"),  # y,,
        (None, "cD10bHMtdW5pcXVlLCw="),  # p=tls-unique,,
    ],
)
def test_a_right_proof_over_another_nonce_or_binding_is_refused(
    mechanism: str, nonce: str | None, binding: str
) -> None:
    broker = scram_server(mechanism)
    challenge = broker.evaluate(FIRST).token
    altered = proved(mechanism, "secret", FIRST, challenge, nonce=nonce, binding=binding)
    with pytest.raises(LoginFailed) as refused:
        broker.evaluate(altered)
    assert refused.value.reason == "altered nonce or channel binding"


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_right_proof_over_what_was_agreed_is_accepted(mechanism: str) -> None:
    broker = scram_server(mechanism)
    challenge = broker.evaluate(FIRST).token
    assert broker.evaluate(proved(mechanism, "secret", FIRST, challenge)).user == "alice"


@pytest.mark.spec("SEC-05")
def test_plain_does_the_same_work_for_an_unknown_user_and_a_wrong_password() -> None:
    def work_of_login(user: str) -> Counter[str]:
        with counted_calls() as calls, pytest.raises(LoginFailed):
            PlainServer({"alice": "secret"}).evaluate(f"\0{user}\0guess".encode())
        return calls

    work_of_login("alice")  # what is computed once is not counted
    known, unknown = work_of_login("alice"), work_of_login("nobdy")
    assert known == unknown
    assert known["compare_digest"] == 1


# Our client


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("file:///etc/passwd", "not allowed"),
        ("file:/etc/passwd", "not allowed"),
        ("https://169.254.169.254/latest/meta-data/", "not allowed"),
        ("https://issuer.example.com/token?to=inside", "not allowed"),
        ("https://issuer.example.com:443/token", "not allowed"),
        ("http://issuer.example.com/token", "expected an https: or file:"),
        ("ftp://issuer.example.com/token", "expected an https: or file:"),
        ("https:///token", "expected a host name"),
    ],
)
def test_a_client_reads_its_token_only_from_addresses_that_are_allowed(url: str, text: str) -> None:
    config = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.allowed.urls": "https://issuer.example.com/token",
    }
    with pytest.raises(UserError, match=text) as refused:
        ClientLogin(ClientConfig.from_options({}, config), ManualClock())
    assert "sasl.oauthbearer.token.endpoint.url" in str(refused.value)


def client_of(mechanism: str) -> ClientLogin:
    config = {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": "secret"}
    settings = ClientConfig.from_options({}, config)
    return ClientLogin(settings, ManualClock(), lambda: "clientnonce")


@pytest.mark.spec("SEC-05")
@pytest.mark.real_loop
@pytest.mark.parametrize("mechanism", HASHES)
async def test_our_client_derives_its_key_on_another_thread(mechanism: str) -> None:
    exchange = client_of(mechanism).exchange("localhost")
    await exchange.first()
    challenge = b"r=clientnoncex,s=c2FsdA==,i=4096"
    with counted_calls() as calls:
        final = await exchange.evaluate(challenge)
    assert final == proved(mechanism, "secret", FIRST, challenge)
    assert calls["pbkdf2_hmac"] == calls["openssl_pbkdf2_hmac"] == 0, "on the event loop"


@pytest.mark.parametrize("count", [0, 1, 4_095, 500_001, 999_999_999])
async def test_our_client_computes_neither_too_few_nor_too_many_iterations(count: int) -> None:
    exchange = client_of("SCRAM-SHA-256").exchange("localhost")
    await exchange.first()
    threads = threading.active_count()
    with pytest.raises(AuthenticationFailed, match=f"asks for {count} iterations"):
        await exchange.evaluate(f"r=clientnoncex,s=c2FsdA==,i={count}".encode())
    assert threading.active_count() == threads, "nothing was begun"


# The rules of a listener for tokens

RULES = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example.com/keys",
    "sasl.oauthbearer.allowed.urls": "https://issuer.example.com/keys",
    "sasl.oauthbearer.expected.audience": "kafka,other-kafka",
    "sasl.oauthbearer.expected.issuer": "us",
    "sasl.oauthbearer.clock.skew.seconds": "10",
}


def login_by(token: str, *, keys: bool = True, claim: str = "sub") -> Step:
    """The answer of a broker whose listener has these rules."""
    texts = {**RULES, "sasl.oauthbearer.sub.claim.name": claim}
    listener = ListenerSettings.of("SASL", BrokerConfig.parse(texts), {})
    clock = ManualClock(int(NOW_S * 1000))
    broker = SaslServer(listener, ScramCredentials(), clock, lambda: "nonce")
    assert broker.key_set is not None
    if keys:
        broker.key_set.keys = {KEY.id: KEY.entry}
    exchange = broker.exchange("OAUTHBEARER")
    return exchange.evaluate(f"n,,\1auth=Bearer {token}\1\1".encode())


@pytest.mark.spec("SEC-05")
def test_a_token_that_keeps_every_rule_of_the_listener_is_accepted() -> None:
    for audience in ("kafka", "other-kafka", ["else", "kafka"]):
        assert login_by(KEY.token(aud=audience)).user == "alice"
    assert login_by(KEY.token(exp=NOW_S - 9)).user == "alice"


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(
    "token",
    [
        KEY.token(aud=None),
        KEY.token(aud="another-service"),
        KEY.token(aud=[]),
        KEY.token(aud=["kafka2"]),
        KEY.token(iss=None),
        KEY.token(iss="them"),
        KEY.token(exp=NOW_S - 11),
        KEY.token(exp=None),
        SigningKey(now_s=NOW_S).token(),
    ],
)
def test_a_token_that_breaks_a_rule_of_the_listener_is_refused(token: str) -> None:
    assert login_by(token).user is None


@pytest.mark.spec("SEC-05")
def test_until_keys_have_been_read_no_token_is_accepted() -> None:
    assert login_by(KEY.token(), keys=False).user is None


@pytest.mark.spec("SEC-05")
def test_a_user_is_the_claim_that_the_listener_names() -> None:
    token = KEY.token(email="alice@example.com")
    assert login_by(token, claim="email").user == "alice@example.com"
    assert login_by(KEY.token(), claim="email").user is None
