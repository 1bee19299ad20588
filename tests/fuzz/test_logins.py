"""Login exchanges of hostile clients: nobody is let in, nothing fails inside, nothing stays behind.

First tokens alone, then frames of whole connections. What they cost is counted in steps, frames and
bytes: the time that it takes is the machine's. The short forms run always, long ones
in `make soak`.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import pytest

from ottla.api.login import LOGIN_MAX_MS, STEPS_MAX, Login, LoginContext
from ottla.config.broker import BrokerConfig
from ottla.net.channel import Channel, ChannelContext
from ottla.net.request_slot import RequestSlot
from ottla.protocol import wire
from ottla.security.delegation_tokens import DelegationTokens, NewToken, TokenLifetimes, created
from ottla.security.sasl.exchange import LoginFailed, ServerExchange, Step
from ottla.security.sasl.scram import Credential, ScramCredentials
from ottla.security.sasl.server import ListenerSettings, SaslServer
from tests.fakes.manual_time import ManualClock
from tests.fakes.transport import MemoryTransport
from tests.fuzz.growth import no_growth
from tests.net.rig import Line, Rig, Unread

Server = TypeVar("Server", bound=SaslServer)
SEED: Final = int(os.environ.get("OTTLA_FUZZ_SEED", "1"))
HANDSHAKE, API_VERSIONS, AUTHENTICATE = 17, 18, 36
GROWTH_MAX_BYTES: Final = 200_000
WRITTEN_MAX_BYTES: Final = 60_000
"""Answers of one connection: each is about as long as the longest user name."""
STEPS: Final = 4
JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
CHARACTERS: Final = b'\0,=nrcpvay\x01\xffAz0+/ :.{}"\n'


def server(kind: type[Server]) -> tuple[Server, str]:
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
    return kind(listener, credentials, clock, lambda: "servernonce"), token.id


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
    listener, token = server(SaslServer)
    dice = random.Random(SEED)
    refused = sum(_refused(dice, listener, token) for _ in range(count // 3))
    with no_growth(GROWTH_MAX_BYTES):
        refused += sum(_refused(dice, listener, token) for _ in range(count - count // 3))
    assert refused == count


def _refused(dice: random.Random, listener: SaslServer, token: str) -> bool:
    """One exchange: whether it ended with a failure."""
    exchange = listener.exchange(dice.choice(listener.mechanisms))
    answer = b""
    try:
        for _ in range(STEPS):
            step = exchange.evaluate(damaged(dice, well_formed(dice, token, answer)))
            assert step.user is None, "nobody knows a password"
            answer = step.token
            assert len(answer) < 20_000
    except LoginFailed as failure:
        assert len(str(failure)) < 300, "the client gets a short text"
        return True
    return False


class CountedExchange:
    """Counts the steps of one login."""

    def __init__(self, exchange: ServerExchange, count: Callable[[], None]) -> None:
        self._exchange = exchange
        self._count = count
        self.blocks = exchange.blocks

    def evaluate(self, token: bytes) -> Step:
        self._count()
        return self._exchange.evaluate(token)


class CountedServer(SaslServer):
    steps = 0

    def exchange(self, mechanism: str) -> ServerExchange:
        return CountedExchange(super().exchange(mechanism), self._count)

    def _count(self) -> None:
        self.steps += 1


class Attack:
    """Connections to a SASL listener, one after the other, whose frames are damaged by dice."""

    def __init__(self, seed: int) -> None:
        self.dice, self.rig = random.Random(seed), Rig()
        self.server, self._token = server(CountedServer)
        self.outcomes: Counter[str] = Counter()
        self.answered: Counter[int] = Counter()
        self._context = LoginContext(
            lambda: self.server, self._answer, self.rig.clock, lambda: 0, self._note,
            self._run_blocking,
        )  # fmt: skip

    async def one(self) -> None:
        """One connection: a mechanism, tokens, and an end of its choice."""
        dice, transport, steps = self.dice, MemoryTransport(), self.server.steps
        context = ChannelContext(
            "SASL", "SASL_PLAINTEXT", self._answer, False,
            login=lambda connection: Login(connection, self._context),
        )  # fmt: skip
        channel = Channel(self.rig.network, context)
        channel.connection_made(transport)
        line = Line(channel, transport)
        version = dice.choice([0, 1, 1, 1])
        mechanism = dice.choice([*self.server.mechanisms, "GSSAPI", "NONE"])
        await self._send(line, frame(HANDSHAKE, version, mechanism=mechanism))
        for _ in range(dice.choice([1, 2, STEPS, 3 * STEPS_MAX])):
            before = bytes(transport.written)
            token = damaged(dice, well_formed(dice, self._token, before))
            if version == 0:
                await self._send(line, len(token).to_bytes(4, "big") + token)
            else:
                kind = dice.choice([HANDSHAKE, API_VERSIONS] + [AUTHENTICATE] * 8)
                await self._send(line, self._frame(kind, token))
        if not transport.is_closing() and dice.random() < 0.05:
            self.rig.sweep(LOGIN_MAX_MS / 1e3 + 1)
            await asyncio.sleep(0)
            assert transport.is_closing(), "a login that stops is ended"
        assert self.server.steps - steps <= STEPS_MAX
        assert len(transport.written) < WRITTEN_MAX_BYTES
        assert channel.peer.principal == "User:ANONYMOUS"
        line.lose()

    def _frame(self, key: int, token: bytes) -> bytes:
        dice = self.dice
        if key == HANDSHAKE:
            return frame(key, 1, mechanism=dice.choice(self.server.mechanisms))
        if key == API_VERSIONS:
            return frame(key, 0)
        made = frame(key, dice.choice([0, 1, 2]), auth_bytes=token)
        if dice.random() < 0.3:
            body = damaged(dice, made[4:])
            made = len(body).to_bytes(4, "big") + body
        return made

    async def _send(self, line: Line, data: bytes) -> None:
        cut = self.dice.randrange(len(data) + 1)
        with suppress(Unread):
            line.send(data[:cut])
            line.send(data[cut:])
        for _ in range(3):
            await asyncio.sleep(0)

    def _answer(self, frame: memoryview, slot: RequestSlot) -> None:
        self.answered[slot.api] += 1
        slot.close("no more is to be known")

    def _note(self, outcome: str) -> None:
        self.outcomes[outcome] += 1

    def _run_blocking(self, work: Callable[[], Step]) -> asyncio.Future[Step]:
        raise AssertionError("no mechanism here blocks")


def frame(key: int, version: int, **fields: Any) -> bytes:
    return bytes(wire.encode_request(key, version, 1, "hostile", fields))


@pytest.mark.spec("SEC-05", "SEC-06")
@pytest.mark.virtual_limit(10**9)
@pytest.mark.parametrize(
    "count", [900, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)])]
)
async def test_no_damaged_frame_of_a_login_lets_anybody_in_fails_inside_or_leaves_anything(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    caplog.set_level(logging.ERROR)  # what is kept of others would count as growth
    attack = Attack(SEED)
    for _ in range(count // 3):
        await attack.one()
    with no_growth(GROWTH_MAX_BYTES):
        for _ in range(count - count // 3):
            await attack.one()
    assert failures == []
    assert caplog.records == [], "nothing fails inside"
    assert set(attack.outcomes) == {"failed"}
    assert attack.outcomes["failed"] > count / 10, "most come as far as a check"
    assert set(attack.answered) <= {API_VERSIONS}, "nothing else is passed on before a login"
    assert not attack.rig.network.live
