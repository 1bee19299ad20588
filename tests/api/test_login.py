"""Logins on a SASL listener: what is answered before one, and what a session may do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from ottla.api.login import Login, LoginContext, Outcome
from ottla.config.broker import BrokerConfig
from ottla.model.errors import Disconnect, ErrorCode
from ottla.net.channel import Channel, ChannelContext
from ottla.net.request_slot import RequestSlot
from ottla.protocol import wire
from ottla.security.sasl.exchange import LoginFailed, ServerExchange, Step
from ottla.security.sasl.scram import ScramCredentials
from ottla.security.sasl.server import ListenerSettings, SaslServer
from tests.fakes.transport import MemoryTransport
from tests.net.frames import request
from tests.net.rig import Line, Rig, echo

HANDSHAKE, API_VERSIONS, AUTHENTICATE, METADATA = 17, 18, 36, 3
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = f'{JAAS} user_alice="secret" user_bob="other";'
DELAY_MS = 100


class Blocking:
    """A mechanism that takes its time: the token is the user."""

    blocks = True

    def evaluate(self, token: bytes) -> Step:
        user = token.decode()
        if user == "retry":
            raise Disconnect("try again")
        if user == "nobody":
            raise LoginFailed("no", user=user)
        assert user != "bug"
        return Step(b"", user) if user else Step(b"more")


class Mechanisms(SaslServer):
    def exchange(self, mechanism: str) -> ServerExchange:
        return Blocking() if mechanism == "SCRAM-SHA-512" else super().exchange(mechanism)


class Logins:
    """A listener with PLAIN; requests after a login are echoed."""

    def __init__(self, **settings: str) -> None:
        self.rig = Rig()
        self.counted: list[str] = []
        self.answered: list[int] = []
        texts = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        listener = ListenerSettings.of(
            "SASL", BrokerConfig.parse(texts), {"plain.sasl.jaas.config": USERS}
        )
        self.blocking: list[tuple[Callable[[], Step], asyncio.Future[Step]]] = []
        server = Mechanisms(listener, ScramCredentials(), self.rig.clock, lambda: "nonce")
        self._context = LoginContext(
            lambda: server, self._answer, self.rig.clock, lambda: DELAY_MS, self.counted.append,
            self._run_blocking,
        )  # fmt: skip

    def connect(self) -> Line:
        transport = MemoryTransport()
        context = ChannelContext(
            "SASL", "SASL_PLAINTEXT", self._answer, False,
            login=lambda connection: Login(connection, self._context),
        )  # fmt: skip
        channel = Channel(self.rig.network, context)
        channel.connection_made(transport)
        return Line(channel, transport)

    def _answer(self, frame: memoryview, slot: RequestSlot) -> None:
        self.answered.append(slot.api)
        if slot.api in (HANDSHAKE, AUTHENTICATE):
            call = wire.parse_call(frame)
            request = wire.decode(call, frame)
            login = slot.peer.login
            assert isinstance(login, Login)

            def done(outcome: Outcome) -> None:
                assert isinstance(outcome, dict)
                slot.reply((wire.reply(call, outcome),))

            if slot.api == HANDSHAKE:
                done(login.handshake(request.mechanism))
            else:
                assert login.authenticate(bytes(request.auth_bytes), done)
        else:
            echo(frame, slot)

    def _run_blocking(self, work: Callable[[], Step]) -> asyncio.Future[Step]:
        self.blocking.append((work, asyncio.get_running_loop().create_future()))
        return self.blocking[-1][1]

    async def run_step(self) -> None:
        """What a thread does."""
        work, future = self.blocking.pop()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


def ask(line: Line, key: int, version: int, **fields: Any) -> Any:
    """Send a request; its reply if there is one already."""
    line.transport.written.clear()
    line.send(wire.encode_request(key, version, 1, "test", fields))
    return reply(line, key, version)


def reply(line: Line, key: int, version: int) -> Any:
    written = bytes(line.transport.written)
    return wire.decode_reply(key, version, memoryview(written)[4:]) if written else None


def log_in(line: Line, user: str = "alice", password: str = "secret") -> Any:
    ask(line, HANDSHAKE, 1, mechanism="PLAIN")
    return ask(line, AUTHENTICATE, 2, auth_bytes=f"\0{user}\0{password}".encode())


@pytest.mark.spec("SEC-03", "SEC-05")
async def test_after_a_login_requests_are_handled_for_the_principal() -> None:
    logins = Logins()
    line = logins.connect()
    shaken = ask(line, HANDSHAKE, 1, mechanism="PLAIN")
    assert (shaken.error_code, shaken.mechanisms) == (
        ErrorCode.none,
        ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    said = ask(line, AUTHENTICATE, 2, auth_bytes=b"\0alice\0secret")
    assert said.error_code is ErrorCode.none
    assert line.channel.peer.principal == "User:alice"
    line.transport.written.clear()
    line.send(request(7, api=METADATA, size=10))
    assert line.replies == [7]
    assert logins.counted == ["successful"]
    assert line.channel.connection.peer.answer == logins._answer, "no check stays behind"


BEFORE = [METADATA, 0, 1, AUTHENTICATE, 60]


@pytest.mark.parametrize("key", BEFORE)
async def test_before_a_login_every_other_request_closes_the_connection(
    key: int, caplog: pytest.LogCaptureFixture
) -> None:
    logins = Logins()
    line = logins.connect()
    line.send(request(1, api=key, size=11))
    await asyncio.sleep(0)
    assert line.transport.is_closing()
    assert logins.answered == []
    assert "before login" in caplog.text


async def test_api_versions_may_be_asked_for_before_a_login() -> None:
    logins = Logins()
    line = logins.connect()
    line.send(wire.encode_request(API_VERSIONS, 0, 3, "test", {}))
    assert logins.answered == [API_VERSIONS]
    assert not line.transport.is_closing()


async def test_an_unknown_mechanism_is_answered_with_those_there_are() -> None:
    line = Logins().connect()
    ask(line, HANDSHAKE, 1, mechanism="GSSAPI")
    await asyncio.sleep(DELAY_MS / 1e3 + 0.01)
    refused = reply(line, HANDSHAKE, 1)
    assert refused.error_code is ErrorCode.unsupported_sasl_mechanism
    assert refused.mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    assert line.transport.is_closing()


@pytest.mark.spec("SEC-05", "CFG-016")
@pytest.mark.parametrize("user", ["alice", "nobody"])
async def test_a_failed_login_is_answered_after_a_delay_and_ends_the_connection(
    user: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    logins = Logins()
    line = logins.connect()
    assert log_in(line, user, "planted-password") is None, "not at once"
    await asyncio.sleep(DELAY_MS / 1e3 - 0.01)
    assert not line.transport.written
    await asyncio.sleep(0.02)
    refused = reply(line, AUTHENTICATE, 2)
    assert refused.error_code is ErrorCode.sasl_authentication_failed
    assert refused.error_message == "Authentication failed: Invalid username or password"
    assert line.transport.is_closing()
    assert logins.counted == ["failed"]
    assert f"login failed: user='{user}'" in caplog.text
    assert "planted-password" not in caplog.text


async def test_a_login_that_takes_longer_than_ten_seconds_is_ended() -> None:
    logins = Logins()
    line = logins.connect()
    ask(line, HANDSHAKE, 1, mechanism="PLAIN")
    logins.rig.sweep(9)
    assert not line.transport.is_closing()
    logins.rig.sweep(2)
    await asyncio.sleep(0)
    assert line.transport.is_closing()


async def test_the_ten_seconds_of_a_login_do_not_begin_again_with_another_request() -> None:
    logins = Logins()
    line = logins.connect()
    ask(line, HANDSHAKE, 1, mechanism="PLAIN")
    for _ in range(3):
        logins.rig.sweep(3)
        line.send(wire.encode_request(API_VERSIONS, 0, 3, "test", {}))
        assert not line.transport.is_closing()
    assert logins.answered == [API_VERSIONS] * 3
    logins.rig.sweep(2)
    await asyncio.sleep(0)
    assert line.transport.is_closing()


async def test_a_large_request_before_a_login_is_refused_by_its_size() -> None:
    line = Logins().connect()
    line.send((512 * 1024 + 1).to_bytes(4, "big") + bytes(8))
    await asyncio.sleep(0)
    assert line.transport.is_closing()
    after = Logins().connect()
    log_in(after)
    after.send((512 * 1024 + 1).to_bytes(4, "big") + bytes(8))
    assert not after.transport.is_closing()


async def test_old_clients_send_bare_tokens_after_version_0() -> None:
    line = Logins().connect()
    ask(line, HANDSHAKE, 0, mechanism="PLAIN")
    line.transport.written.clear()
    token = b"\0alice\0secret"
    line.send(len(token).to_bytes(4, "big") + token)
    assert bytes(line.transport.written) == bytes(4)
    assert line.channel.peer.principal == "User:alice"
    line.send(bytes(4) + b"x")
    await asyncio.sleep(0)
    assert line.transport.is_closing(), "requests have a smallest size again"


async def test_a_bare_token_that_is_wrong_closes_without_an_answer() -> None:
    line = Logins().connect()
    ask(line, HANDSHAKE, 0, mechanism="PLAIN")
    line.transport.written.clear()
    line.send((1).to_bytes(4, "big") + b"x")
    await asyncio.sleep(DELAY_MS / 1e3 + 0.01)
    assert line.transport.is_closing()
    assert not line.transport.written


async def test_a_session_that_expires_must_log_in_again_as_the_same_user() -> None:
    logins = Logins(connections_max_reauth_ms="60000")
    line = logins.connect()
    said = log_in(line)
    assert said.session_lifetime.total_seconds() == 60
    logins.rig.sweep(50)
    assert log_in(line).error_code is ErrorCode.none, "again, in time"
    logins.rig.sweep(50)
    logins.answered.clear()
    line.send(request(7, api=METADATA, size=10))
    assert logins.answered == [METADATA]
    logins.rig.sweep(11)
    line.send(request(8, api=METADATA, size=10))
    await asyncio.sleep(0)
    assert line.transport.is_closing(), "too late"


async def test_nobody_becomes_somebody_else_by_logging_in_again() -> None:
    logins = Logins(connections_max_reauth_ms="60000")
    line = logins.connect()
    log_in(line)
    login = line.channel.peer.login
    assert isinstance(login, Login)
    assert login.may_repeat
    assert login.handshake("SCRAM-SHA-256")["error_code"] is ErrorCode.unsupported_sasl_mechanism
    login.handshake("PLAIN")
    outcomes: list[Outcome] = []
    assert login.authenticate(b"\0bob\0other", outcomes.append)
    [refused] = outcomes
    assert isinstance(refused, LoginFailed)
    assert "Cannot change principals" in str(refused)
    assert line.channel.peer.principal == "User:alice"


async def test_without_an_end_of_the_session_nobody_logs_in_again() -> None:
    line = Logins().connect()
    assert log_in(line).session_lifetime.total_seconds() == 0
    login = line.channel.peer.login
    assert isinstance(login, Login)
    assert not login.may_repeat
    assert not login.authenticate(b"\0bob\0other", lambda outcome: None)


@pytest.mark.spec("SEC-05")
async def test_a_mechanism_that_blocks_runs_elsewhere_and_answers_when_it_is_done() -> None:
    logins = Logins()
    line = logins.connect()
    ask(line, HANDSHAKE, 1, mechanism="SCRAM-SHA-512")
    assert ask(line, AUTHENTICATE, 2, auth_bytes=b"") is None
    await logins.run_step()
    assert reply(line, AUTHENTICATE, 2).auth_bytes == b"more"
    assert ask(line, AUTHENTICATE, 2, auth_bytes=b"alice") is None
    assert line.channel.peer.principal == "User:ANONYMOUS"
    await logins.run_step()
    assert reply(line, AUTHENTICATE, 2).error_code is ErrorCode.none
    assert line.channel.peer.principal == "User:alice"
    assert logins.counted == ["successful"]


@pytest.mark.parametrize(
    ("user", "counted"), [("nobody", ["failed"]), ("retry", []), ("bug", []), ("gone", [])]
)
async def test_a_mechanism_that_blocks_and_fails_lets_nobody_in(
    user: str, counted: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    logins = Logins()
    line = logins.connect()
    ask(line, HANDSHAKE, 1, mechanism="SCRAM-SHA-512")
    ask(line, AUTHENTICATE, 2, auth_bytes=user.encode())
    if user == "gone":
        line.lose()
    await logins.run_step()
    await asyncio.sleep(DELAY_MS / 1e3 + 0.01)
    refused = reply(line, AUTHENTICATE, 2)
    assert (refused is not None) == (user == "nobody")
    assert line.transport.is_closing() or user == "gone"
    assert line.channel.peer.principal == "User:ANONYMOUS"
    assert logins.counted == counted
    assert ("unexpected error" in caplog.text) == (user == "bug")


async def test_while_a_step_runs_there_is_no_other() -> None:
    logins = Logins(connections_max_reauth_ms="60000")
    line = logins.connect()
    login = line.channel.peer.login
    assert isinstance(login, Login)
    login.handshake("SCRAM-SHA-512")
    outcomes: list[Outcome] = []
    assert login.authenticate(b"alice", outcomes.append)
    assert not login.authenticate(b"bob", outcomes.append)
    await logins.run_step()
    assert len(outcomes) == 1
    assert line.channel.peer.principal == "User:alice"
