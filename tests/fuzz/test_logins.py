"""Login exchanges of hostile clients: nobody is let in, nothing fails inside.

The short form runs always, 100,000 exchanges in `make soak`.
"""

from __future__ import annotations

import base64
import os
import random
from typing import Final

import pytest

from ottla.config.broker import BrokerConfig
from ottla.security.delegation_tokens import DelegationTokens, NewToken, TokenLifetimes, created
from ottla.security.sasl.exchange import LoginFailed
from ottla.security.sasl.scram import Credential, ScramCredentials
from ottla.security.sasl.server import ListenerSettings, SaslServer
from tests.fakes.manual_time import ManualClock

STEPS: Final = 4
JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
CHARACTERS: Final = b'\0,=nrcpvay\x01\xffAz0+/ :.{}"\n'


def server() -> tuple[SaslServer, str]:
    """With users whose passwords no client knows, and a token."""
    dice, clock = random.Random(7), ManualClock(1_700_000_000_000)
    credentials = ScramCredentials()
    credentials.secret = dice.randbytes(32)
    tokens = DelegationTokens("key", clock)
    token = created(
        NewToken("User:alice", "User:alice"), dice.randbytes(16), clock.wall_ms(),
        TokenLifetimes(10**9, 10**9),
    )  # fmt: skip
    tokens.put([token])
    credentials.tokens = tokens
    made = {
        mechanism: str(Credential.of_salted(mechanism, dice.randbytes(32), b"salt", 4096))
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    }
    credentials.set_user("alice", made)
    password = base64.b64encode(dice.randbytes(24)).decode()
    texts = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "file:/nowhere/keys",
        "sasl.oauthbearer.allowed.urls": "file:/nowhere/keys",
    }
    overrides = {"plain.sasl.jaas.config": f'{JAAS} user_alice="{password}";'}
    listener = ListenerSettings.of("SASL", BrokerConfig.parse(texts), overrides)
    return SaslServer(listener, credentials, clock, lambda: "servernonce"), token.id


def well_formed(dice: random.Random, token: str, answer: bytes) -> bytes:
    """A message that is right in its form: its first, or one that follows the broker's answer."""
    user = dice.choice(["alice", "nobody", token, "=2C=3D", "a" * 5_000])
    extension = dice.choice(["", ",tokenauth=true", ",tokenauth=TRUE", ",m=1"])
    proof = base64.b64encode(dice.randbytes(dice.choice([0, 20, 32, 64]))).decode()
    nonce = answer.partition(b"r=")[2].partition(b",")[0].decode("ascii", "replace")
    claims = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    subject = base64.urlsafe_b64encode(b'{"sub":"alice","exp":99999999999}').decode().rstrip("=")
    forms = [
        f"\0{user}\0{proof}",
        f"n,,n={user},r=nonce{extension}",
        f"y,a={user},n={user},r=nonce{extension}",
        f"c=biws,r={nonce},p={proof}",
        f"n,,\x01auth=Bearer {claims}.{subject}.{proof}\x01\x01",
    ]
    return dice.choice(forms).encode()


def damaged(dice: random.Random, message: bytes) -> bytes:
    out = bytearray(message)
    for _ in range(dice.choice([0, 0, 1, 3, 20])):
        at = dice.randrange(len(out) + 1)
        match dice.randrange(4):
            case 0:
                del out[at : at + dice.randrange(1, 9)]
            case 1:
                out[at:at] = bytes([dice.choice(CHARACTERS)]) * dice.choice([1, 2, 50])
            case 2:
                out[at : at + 1] = dice.randbytes(1)
            case _:
                out[at:at] = out[: dice.randrange(1, 40)]
    return bytes(out)


@pytest.mark.spec("SEC-05", "SEC-06")
@pytest.mark.parametrize(
    "count", [2_000, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])]
)
def test_no_damaged_or_guessed_login_is_accepted_or_fails_inside(count: int) -> None:
    listener, token = server()
    dice = random.Random(int(os.environ.get("OTTLA_FUZZ_SEED", "1")))
    refused = 0
    for _ in range(count):
        exchange = listener.exchange(dice.choice(listener.mechanisms))
        answer = b""
        try:
            for _ in range(STEPS):
                step = exchange.evaluate(damaged(dice, well_formed(dice, token, answer)))
                assert step.user is None, "nobody knows a password"
                answer = step.token
                assert len(answer) < 20_000
        except LoginFailed as failure:
            refused += 1
            assert len(str(failure)) < 300, "the client gets a short text"
    assert refused == count
