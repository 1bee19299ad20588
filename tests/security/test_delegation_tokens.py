"""Delegation tokens: lifetimes, who may change them, and logins with them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest

from ottla.model.clock import WallMs
from ottla.model.errors import ErrorCode, KafkaError
from ottla.security.delegation_tokens import (
    MAX_RENEWERS,
    DelegationTokens,
    NewToken,
    Token,
    TokenLifetimes,
    created,
    expired,
    renewed,
)
from ottla.security.sasl.exchange import LoginFailed, Step
from ottla.security.sasl.scram import HASHES, ScramClient, ScramServer, UnknownUsers
from tests.fakes.manual_time import ManualClock

LIFETIMES = TokenLifetimes(max_ms=1_000, renewal_ms=100)
NEW = NewToken("User:alice", "User:alice", ("User:bob",))
NOW_MS = WallMs(5_000)
pytestmark = pytest.mark.spec("SEC-06")


def token(lifetime_ms: int = -1) -> Token:
    return created(NEW._replace(lifetime_ms=lifetime_ms), b"0123456789abcdef", NOW_MS, LIFETIMES)


@pytest.mark.parametrize(
    ("lifetime_ms", "max_ms", "expires_ms"),
    [(-1, 6_000, 5_100), (0, 6_000, 5_100), (50, 5_050, 5_050), (10**15, 6_000, 5_100)],
)
def test_a_token_expires_after_its_renewal_period_and_never_beyond_its_maximum(
    lifetime_ms: int, max_ms: int, expires_ms: int
) -> None:
    made = token(lifetime_ms)
    assert (made.issued_ms, made.max_ms, made.expires_ms) == (NOW_MS, max_ms, expires_ms)


def test_a_token_has_no_more_renewers_than_one_can_store_at_once() -> None:
    many = tuple(f"User:renewer-{number}" for number in range(MAX_RENEWERS + 1))
    most = created(NEW._replace(renewers=many[1:]), b"0123456789abcdef", NOW_MS, LIFETIMES)
    assert len(most.renewers) == MAX_RENEWERS
    with pytest.raises(KafkaError, match="at most 1000 renewers, not 1001") as refused:
        created(NEW._replace(renewers=many), b"0123456789abcdef", NOW_MS, LIFETIMES)
    assert refused.value.code is ErrorCode.invalid_request


def test_owner_and_renewers_renew_a_token_up_to_its_maximum() -> None:
    for principal in ("User:alice", "User:bob"):
        assert renewed(token(), principal, -1, WallMs(5_050), LIFETIMES).expires_ms == 5_150
        assert renewed(token(), principal, 10**12, WallMs(5_050), LIFETIMES).expires_ms == 6_000


def test_owner_and_renewers_expire_a_token_now_or_later() -> None:
    assert expired(token(), "User:bob", -1, WallMs(9_000)) is None
    later = expired(token(), "User:alice", 10, WallMs(5_050))
    assert later is not None
    assert later.expires_ms == 5_060


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            lambda: renewed(token(), "User:eve", -1, WallMs(5_050), LIFETIMES),
            ErrorCode.delegation_token_owner_mismatch,
        ),
        (
            lambda: expired(token(), "User:eve", -1, WallMs(5_050)),
            ErrorCode.delegation_token_owner_mismatch,
        ),
        (
            lambda: renewed(token(), "User:bob", -1, WallMs(5_101), LIFETIMES),
            ErrorCode.delegation_token_expired,
        ),
        (
            lambda: expired(token(), "User:bob", 5, WallMs(5_101)),
            ErrorCode.delegation_token_expired,
        ),
    ],
)
def test_others_may_not_change_a_token_and_nobody_an_expired_one(
    change: Callable[[], object], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        change()
    assert refused.value.code is code


def tokens(secret: str = "key") -> tuple[DelegationTokens, Token, ManualClock]:
    clock = ManualClock()
    kept = DelegationTokens(secret, clock)
    made = created(NEW, b"0123456789abcdef", clock.wall_ms(), LIFETIMES)
    kept.put([made])
    return kept, made, clock


def test_the_password_is_kafkas_hmac_of_the_id() -> None:
    kept, made, _ = tokens()
    expected = hmac.new(b"key", made.id.encode(), hashlib.sha512).digest()
    assert kept.hmac(made.id) == expected
    assert kept.find(expected) == made
    with pytest.raises(KafkaError):
        kept.find(b"\0" + expected[1:])


async def log_in(
    kept: DelegationTokens | None, id: str, mechanism: str, mac: bytes, *, is_token: bool = True
) -> Step:
    async def run(work: Callable[[], bytes]) -> bytes:
        return work()

    password = base64.b64encode(mac).decode()
    client = ScramClient(mechanism, id, password, "nonce", run, is_token=is_token)
    server = ScramServer(mechanism, {}, "other", UnknownUsers(b"secret", {}), kept)
    final = await client.evaluate(server.evaluate(await client.first()).token)
    assert final is not None
    step = server.evaluate(final)
    assert await client.evaluate(step.token) is None
    return step


@pytest.mark.parametrize("mechanism", HASHES)
async def test_a_token_logs_in_as_its_owner_until_it_expires(mechanism: str) -> None:
    kept, made, clock = tokens()
    step = await log_in(kept, made.id, mechanism, kept.hmac(made.id))
    assert (step.user, step.expires_ms, step.by_token) == ("alice", made.expires_ms, True)
    clock.ns += (LIFETIMES.renewal_ms + 1) * 1_000_000
    with pytest.raises(LoginFailed):
        await log_in(kept, made.id, mechanism, kept.hmac(made.id))
    assert kept.expired_ids() == [made.id]


async def test_a_wrong_hmac_an_unknown_id_and_a_login_without_the_extension_are_refused() -> None:
    kept, made, _ = tokens()
    mac = kept.hmac(made.id)
    with pytest.raises(LoginFailed, match="invalid credentials"):
        await log_in(kept, made.id, "SCRAM-SHA-256", b"wrong")
    with pytest.raises(LoginFailed, match="invalid credentials"):
        await log_in(kept, "unknown", "SCRAM-SHA-256", mac)
    with pytest.raises(LoginFailed, match="invalid credentials"):
        await log_in(kept, made.id, "SCRAM-SHA-256", mac, is_token=False)
    with pytest.raises(LoginFailed, match="invalid credentials"):
        await log_in(None, made.id, "SCRAM-SHA-256", mac)
    kept.drop([made.id])
    with pytest.raises(LoginFailed, match="invalid credentials"):
        await log_in(kept, made.id, "SCRAM-SHA-256", mac)
