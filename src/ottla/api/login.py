"""The login of a connection on a SASL listener, before any other request and again later.

Owns: the order of SaslHandshake and SaslAuthenticate, the deadline of a login, the delay of a
failed one, and the end of a session. Never checks a credential: `security/sasl` does.

Until the client is authenticated, requests of its connection come here and not to `dispatch`: only
ApiVersions, SaslHandshake and SaslAuthenticate are read, one at a time. On success the connection
gets `dispatch` as its handler, so that later requests pay nothing for this. A session that has
expired gets its handler from here again. Old clients send bare tokens after SaslHandshake
version 0.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from ottla.api.api import Fields
from ottla.model.clock import Clock
from ottla.model.errors import Disconnect, ErrorCode
from ottla.net.connection import Connection
from ottla.net.error_log import escaped
from ottla.net.request_slot import Answer, RequestSlot
from ottla.protocol import wire
from ottla.security.sasl.exchange import LoginFailed, ServerExchange, Step
from ottla.security.sasl.server import SaslServer

log = logging.getLogger(__name__)
audit = logging.getLogger("ottla.security.audit")

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
VERSIONS: Final = {SASL_HANDSHAKE: range(0, 2), SASL_AUTHENTICATE: range(0, 3)}
LOGIN_MAX_MS: Final = 10_000
STEPS_MAX: Final = 8
MS: Final = 1_000_000


Outcome: TypeAlias = Fields | LoginFailed | Disconnect
"""The fields of a reply, or why there is none."""
RunBlocking: TypeAlias = Callable[[Callable[[], Step]], "asyncio.Future[Step]"]


class Phase(Enum):
    HANDSHAKE = auto()  # SaslHandshake comes next
    AUTHENTICATE = auto()  # SaslAuthenticate
    TOKENS = auto()  # bare tokens
    AUTHENTICATED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class LoginContext:
    """What the logins of one listener have in common."""

    server: Callable[[], SaslServer]
    answer: Answer
    clock: Clock
    delay_ms: Callable[[], int]
    count: Callable[[str], None]
    """Counts a login as "successful" or "failed"."""
    run_blocking: RunBlocking
    """Runs a step of a mechanism that may block."""


class Login:
    """One connection's login and session."""

    def __init__(self, connection: Connection, context: LoginContext) -> None:
        self._connection = connection
        self._context = context
        self._phase = Phase.HANDSHAKE
        self._began_ns = context.clock.mono_ns()
        self._expires_ns = 0  # of the session; 0: never
        self._mechanism = ""
        self._exchange: ServerExchange | None = None
        self._steps = 0
        self.has_expired = False
        """Whether the session is over: only another login is let pass."""
        connection.peer.login = self

    def __call__(self, frame: memoryview, slot: RequestSlot) -> None:
        """A request of a client that is not authenticated."""
        try:
            if self._phase is Phase.AUTHENTICATED:
                self._context.answer(frame, slot)  # came in the same turn as the last token
            elif self._phase is Phase.TOKENS:
                self._on_token(bytes(frame), slot)
            else:
                self._on_request(frame, slot)
        except Disconnect as error:
            slot.close(str(error))

    def sweep(self, now_ns: int) -> None:
        """End a login that takes too long; make an expired session log in again."""
        if self._phase is not Phase.AUTHENTICATED:
            if now_ns - self._began_ns > LOGIN_MAX_MS * MS:
                self._connection.end(f"login not finished within {LOGIN_MAX_MS} ms")
        elif self._expires_ns and now_ns > self._expires_ns:
            self.has_expired = True
            self._connection.answer_with(self._on_expired)

    @property
    def may_repeat(self) -> bool:
        """Whether the client may log in again: its session ends at some time."""
        return self._phase is Phase.AUTHENTICATED and self._expires_ns > 0

    @property
    def delay_ms(self) -> int:
        return self._context.delay_ms()

    def handshake(self, mechanism: str) -> Fields:
        """SaslHandshake: begin an exchange if the mechanism is offered."""
        server = self._context.server()
        is_other = self._phase is Phase.AUTHENTICATED and mechanism != self._mechanism
        if mechanism not in server.mechanisms or is_other:
            code = ErrorCode.unsupported_sasl_mechanism
            return {"error_code": code, "mechanisms": list(server.mechanisms)}
        self._mechanism = mechanism
        self._exchange = server.exchange(mechanism)
        self._steps = 0
        return {"error_code": ErrorCode.none, "mechanisms": list(server.mechanisms)}

    def authenticate(self, token: bytes, on_done: Callable[[Outcome], None]) -> bool:
        """SaslAuthenticate: one step of the exchange; False: there is none.

        `on_done` is called at once, or later if the mechanism blocks: then no exchange is open
        until the step is done.
        """
        exchange = self._exchange
        if exchange is None:
            return False
        self._steps += 1
        if self._steps > STEPS_MAX:
            on_done(self._fail(LoginFailed("Authentication failed: too many messages")))
        elif not exchange.blocks:
            on_done(self._outcome(lambda: exchange.evaluate(token)))
        else:
            self._exchange = None
            work = self._context.run_blocking(lambda: exchange.evaluate(token))
            work.add_done_callback(lambda work: self._on_evaluated(exchange, work, on_done))
        return True

    def _on_evaluated(
        self,
        exchange: ServerExchange,
        work: asyncio.Future[Step],
        on_done: Callable[[Outcome], None],
    ) -> None:
        if work.cancelled() or self._connection.closed:
            on_done(Disconnect("the connection was closed during the login"))
            return
        self._exchange = exchange
        try:
            outcome = self._outcome(work.result)
        except Exception:
            log.exception("login by %s failed with an unexpected error", self._mechanism)
            outcome = Disconnect("internal error during a login; see the broker log")
        on_done(outcome)

    def end(self, failure: LoginFailed) -> None:
        """Close the connection after the replies that are ready."""
        self._phase = Phase.FAILED
        self._connection.end(
            f"authentication failed: mechanism={self._mechanism} "
            f"user={escaped(failure.user)!r}: {failure.reason}"
        )

    def _on_request(self, frame: memoryview, slot: RequestSlot) -> None:
        call = wire.parse_call(frame)
        expected = SASL_HANDSHAKE if self._phase is Phase.HANDSHAKE else SASL_AUTHENTICATE
        if call.key == API_VERSIONS:
            self._context.answer(frame, slot)
        elif call.key != expected or self._phase is Phase.FAILED:
            slot.close(f"unexpected request with API key {call.key} before login")
        elif call.version not in VERSIONS[call.key]:
            slot.close(f"unsupported version {call.version} of API key {call.key} before login")
        elif call.key == SASL_HANDSHAKE:
            self._on_handshake(call, wire.decode(call, frame).mechanism, slot)
        else:
            self._on_authenticate(call, bytes(wire.decode(call, frame).auth_bytes), slot)

    def _on_handshake(self, call: wire.Call, mechanism: str, slot: RequestSlot) -> None:
        fields = self.handshake(mechanism)
        if fields["error_code"]:
            failure = LoginFailed(f"mechanism {escaped(mechanism, 50)!r} is not enabled")
            self._record_failure(failure)
            self._refuse(slot, wire.reply(call, fields), failure)
            return
        if call.version == 0:
            self._phase = Phase.TOKENS
            self._connection.reader.accept_tokens()
        else:
            self._phase = Phase.AUTHENTICATE
        slot.reply((wire.reply(call, fields),))

    def _on_authenticate(self, call: wire.Call, token: bytes, slot: RequestSlot) -> None:
        def encode(outcome: Fields | LoginFailed) -> bytes:
            if isinstance(outcome, LoginFailed):
                return wire.reply(call, refusal_fields(outcome))
            return wire.reply(call, outcome)

        self._step(token, slot, encode)

    def _on_token(self, token: bytes, slot: RequestSlot) -> None:
        def encode(outcome: Fields | LoginFailed) -> bytes:
            if isinstance(outcome, LoginFailed):
                return b""
            answer = outcome["auth_bytes"]
            assert isinstance(answer, bytes)
            return len(answer).to_bytes(4, "big") + answer

        self._step(token, slot, encode)

    def _step(
        self, token: bytes, slot: RequestSlot, encode: Callable[[Fields | LoginFailed], bytes]
    ) -> None:
        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Disconnect):
                slot.close(str(outcome))
            elif isinstance(outcome, LoginFailed):
                self._refuse(slot, encode(outcome), outcome)
            else:
                slot.reply((encode(outcome),))

        if not self.authenticate(token, done):
            slot.close("unexpected token during a login")

    def _outcome(self, evaluate: Callable[[], Step]) -> Outcome:
        """What the step comes to; LoginFailed is recorded."""
        try:
            step = evaluate()
            self._check_user(step)
        except LoginFailed as failure:
            return self._fail(failure)
        except Disconnect as error:
            self._exchange = None
            return error
        lifetime_ms = 0 if step.user is None else self._complete(step)
        return {
            "error_code": ErrorCode.none,
            "error_message": None,
            "auth_bytes": step.token,
            "session_lifetime": lifetime_ms,
        }

    def _fail(self, failure: LoginFailed) -> LoginFailed:
        self._exchange = None
        self._record_failure(failure)
        return failure

    def _check_user(self, step: Step) -> None:
        """LoginFailed if a client logs in again as somebody else."""
        if (
            step.user is not None
            and self._phase is Phase.AUTHENTICATED
            and f"User:{step.user}" != self._connection.peer.principal
        ):
            raise LoginFailed("Cannot change principals during re-authentication", user=step.user)

    def _complete(self, step: Step) -> int:
        """The client is authenticated: how long its session lasts, in ms; 0: for ever."""
        context, connection = self._context, self._connection
        peer = connection.peer
        self._exchange = None
        if self._phase is Phase.TOKENS:
            connection.reader.expect_requests()
        self._phase = Phase.AUTHENTICATED
        peer.principal = f"User:{step.user}"
        peer.is_token = step.by_token
        limits_ms = [context.server().max_reauth_ms(self._mechanism)]
        if step.expires_ms is not None:
            limits_ms.append(max(step.expires_ms - context.clock.wall_ms(), 1))
        lifetime_ms = min((limit for limit in limits_ms if limit > 0), default=0)
        self._expires_ns = context.clock.mono_ns() + lifetime_ms * MS if lifetime_ms else 0
        self.has_expired = False
        connection.answer_with(context.answer)
        context.count("successful")
        audit.debug(
            "login: principal=%s host=%s listener=%s mechanism=%s",
            peer.principal, peer.address, peer.listener, self._mechanism,
        )  # fmt: skip
        return lifetime_ms

    def _record_failure(self, failure: LoginFailed) -> None:
        peer = self._connection.peer
        self._context.count("failed")
        audit.info(
            "login failed: user=%r host=%s listener=%s mechanism=%s reason=%s",
            escaped(failure.user), peer.address, peer.listener, self._mechanism, failure.reason,
        )  # fmt: skip

    def _refuse(self, slot: RequestSlot, reply: bytes, failure: LoginFailed) -> None:
        """Answer after the delay that makes guessing slow, then close."""
        self._phase = Phase.FAILED

        def refuse() -> None:
            slot.reply((reply,) if reply else ())
            self.end(failure)

        asyncio.get_running_loop().call_later(self.delay_ms / 1e3, refuse)

    def _on_expired(self, frame: memoryview, slot: RequestSlot) -> None:
        if slot.api in VERSIONS:
            self._context.answer(frame, slot)
        else:
            slot.close("session expired: the client did not log in again in time")


def refusal_fields(failure: LoginFailed) -> Fields:
    return {
        "error_code": ErrorCode.sasl_authentication_failed,
        "error_message": str(failure),
        "auth_bytes": b"",
        "session_lifetime": 0,
    }
