"""What clients get wrong when they log in: each line with its code, its text and its delay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest

import ottla
from ottla.client.admin.scram_users import ScramUpsertion
from ottla.model.errors import ErrorCode
from tests.bad_input.conftest import BrokerOnClock
from tests.fakes.scram_messages import proved
from tests.raw_requests import METADATA, Line

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
E = ErrorCode
DELAY_S: Final = 0.2
SCRAM: Final = "SCRAM-SHA-256"
FIRST: Final = b"n,,n=alice,r=clientnonce"
JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS: Final = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
    "listener.name.clients.plain.sasl.jaas.config": f'{JAAS} user_alice="secret" user_bob="other";',
    "connection.failed.authentication.delay.ms": str(int(DELAY_S * 1000)),
    "connections.max.reauth.ms": "3600000",
}
Answer: TypeAlias = Callable[[bytes], bytes]
"""A client's next token, from the broker's challenge."""


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerOnClock]:
    with BrokerOnClock(SETTINGS) as running:
        inside = running.bootstrap_servers.split(",")[1]
        with ottla.Admin(bootstrap_servers=inside) as admin:
            alice = ScramUpsertion("alice", "secret", SCRAM, 4_096)
            admin.alter_user_scram_credentials([alice]).all()
        yield running


def by_scram(password: str = "secret", **changed: str) -> Answer:
    return lambda challenge: proved(SCRAM, password, FIRST, challenge, **changed)


def longer_nonce(challenge: bytes) -> bytes:
    """Its proof is right, as if the broker had agreed to this nonce."""
    agreed = challenge.decode().partition(",")[0].removeprefix("r=")
    return proved(SCRAM, "secret", FIRST, challenge, nonce=f"{agreed}X")


def with_proof(change: Callable[[bytes], bytes]) -> Answer:
    """The right message but for its proof."""

    def answer(challenge: bytes) -> bytes:
        bare, _, proof = by_scram()(challenge).partition(b",p=")
        return bare + b",p=" + change(proof)

    return answer


REFUSED: Final[dict[str, tuple[str, bytes, Answer | None]]] = {
    "PLAIN with 1 field": ("PLAIN", b"alice", None),
    "PLAIN with 2 fields": ("PLAIN", b"alice\0secret", None),
    "PLAIN with 4 fields": ("PLAIN", b"\0alice\0secret\0", None),
    "PLAIN of an empty user": ("PLAIN", b"\0\0secret", None),
    "PLAIN of an empty password": ("PLAIN", b"\0alice\0", None),
    "PLAIN with a wrong password": ("PLAIN", b"\0alice\0other", None),
    "PLAIN of an unknown user": ("PLAIN", b"\0nobody\0secret", None),
    "PLAIN for another user": ("PLAIN", b"bob\0alice\0secret", None),
    "PLAIN that is not UTF-8": ("PLAIN", b"\0alice\0\xff", None),
    "SCRAM without a message": (SCRAM, b"", None),
    "SCRAM of an empty user": (SCRAM, b"n,,n=,r=clientnonce", None),
    "SCRAM for another user": (SCRAM, b"n,a=bob,n=alice,r=clientnonce", None),
    "SCRAM with a wrong password": (SCRAM, FIRST, by_scram("other")),
    "SCRAM of an unknown user": (SCRAM, b"n,,n=nobody,r=clientnonce", by_scram()),
    "SCRAM with a longer nonce": (SCRAM, FIRST, longer_nonce),
    "SCRAM with its own nonce": (SCRAM, FIRST, by_scram(nonce="clientnonce")),
    "SCRAM with another binding": (SCRAM, FIRST, by_scram(binding="eSws")),
    "SCRAM with bad base64": (SCRAM, FIRST, with_proof(lambda proof: b"!" + proof[1:])),
    "SCRAM with cut base64": (SCRAM, FIRST, with_proof(lambda proof: proof[:-1])),
    "SCRAM with a short proof": (SCRAM, FIRST, with_proof(lambda proof: b"AAAA")),
    "SCRAM without a proof": (SCRAM, FIRST, with_proof(lambda proof: b"")),
}


def log_in(line: Line, mechanism: str, token: bytes, answer: Answer | None = None) -> Any:
    """The last reply."""
    assert line.ask(HANDSHAKE, 1, mechanism=mechanism).error_code is E.none
    reply = line.ask(AUTHENTICATE, 2, auth_bytes=token)
    if answer is None or reply.error_code is not E.none:
        return reply
    return line.ask(AUTHENTICATE, 2, auth_bytes=answer(bytes(reply.auth_bytes)))


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("wrong", REFUSED)
def test_a_login_that_is_wrong_is_refused_with_58_after_the_delay_and_closed(
    clients: str, wrong: str
) -> None:
    mechanism, token, answer = REFUSED[wrong]
    with Line(clients) as line:
        began_s = time.monotonic()
        refused = log_in(line, mechanism, token, answer)
        assert time.monotonic() - began_s > DELAY_S - 0.01
        assert (refused.error_code, refused.auth_bytes) == (E.sasl_authentication_failed, b"")
        assert refused.session_lifetime.total_seconds() == 0
        assert "secret" not in refused.error_message
        assert line.is_closed()


@pytest.mark.parametrize(("mechanism", "token"), [("PLAIN", b"\0alice\0secret"), (SCRAM, FIRST)])
def test_the_same_messages_without_a_mistake_log_in(
    clients: str, mechanism: str, token: bytes
) -> None:
    with Line(clients) as line:
        welcome = log_in(line, mechanism, token, by_scram() if mechanism == SCRAM else None)
        assert (welcome.error_code, welcome.error_message) == (E.none, None)
        assert line.ask(METADATA, 1, topics=[]).brokers


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM"])
def test_an_unknown_user_is_refused_in_the_words_for_a_wrong_password(
    clients: str, mechanism: str
) -> None:
    texts = set()
    for wrong in ("with a wrong password", "of an unknown user"):
        with Line(clients) as line:
            texts.add(log_in(line, *REFUSED[f"{mechanism} {wrong}"]).error_message)
    [text] = texts
    assert "alice" not in text and "nobody" not in text


@pytest.mark.parametrize("name", ["", "GSSAPI", "plain", "SCRAM-SHA-1", "os.system", "\x1b[31m"])
def test_a_mechanism_that_is_not_offered_is_refused_with_33_and_closed(
    clients: str, name: str
) -> None:
    with Line(clients) as line:
        refused = line.ask(HANDSHAKE, 1, mechanism=name)
        assert refused.error_code is E.unsupported_sasl_mechanism
        assert refused.mechanisms == ("PLAIN", SCRAM)
        assert line.is_closed()


# Again, on the same connection


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(
    "token", [b"\0bob\0other", b"\0alice\0wrong", b"\0nobody\0secret", b"bob\0alice\0secret"]
)
def test_who_logs_in_again_as_another_or_with_a_wrong_password_gets_58_and_is_closed(
    clients: str, token: bytes
) -> None:
    with Line(clients) as line:
        assert log_in(line, "PLAIN", b"\0alice\0secret").error_code is E.none
        assert log_in(line, "PLAIN", b"\0alice\0secret").error_code is E.none
        began_s = time.monotonic()
        refused = log_in(line, "PLAIN", token)
        assert time.monotonic() - began_s > DELAY_S - 0.01
        assert refused.error_code is E.sasl_authentication_failed
        assert line.is_closed()


def test_who_logs_in_again_by_another_mechanism_is_refused_with_33(clients: str) -> None:
    with Line(clients) as line:
        assert log_in(line, "PLAIN", b"\0alice\0secret").error_code is E.none
        assert line.ask(HANDSHAKE, 1, mechanism=SCRAM).error_code is E.unsupported_sasl_mechanism
        refused = line.ask(AUTHENTICATE, 2, auth_bytes=FIRST)
        assert refused.error_code is E.illegal_sasl_state


def test_without_logins_a_listener_knows_none(brokers: str) -> None:
    with Line(brokers) as line:
        assert line.ask(HANDSHAKE, 1, mechanism="PLAIN").error_code is E.illegal_sasl_state
        refused = line.ask(AUTHENTICATE, 2, auth_bytes=b"\0alice\0secret")
        assert refused.error_code is E.illegal_sasl_state
