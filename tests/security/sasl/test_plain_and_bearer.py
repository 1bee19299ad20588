"""PLAIN and OAUTHBEARER, without a connection."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time

import pytest

from ottla.model.clock import WallMs
from ottla.model.errors import UserError
from ottla.security.sasl.exchange import LoginFailed
from ottla.security.sasl.key_sets import KeySet, check_address
from ottla.security.sasl.oauthbearer import INVALID, BearerServer
from ottla.security.sasl.plain import WRONG, PlainServer
from ottla.security.sasl.tokens import BadToken, TokenChecker, TokenRules, unsecured_token
from tests.fakes.manual_time import ManualClock
from tests.fakes.token_issuer import SigningKey

USERS = {"alice": "secret"}
NOW = time.time()


@pytest.mark.spec("SEC-05")
def test_plain_lets_in_who_knows_the_password() -> None:
    assert PlainServer(USERS).evaluate(b"\0alice\0secret").user == "alice"
    assert PlainServer(USERS).evaluate(b"alice\0alice\0secret").user == "alice"


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", WRONG),
        (b"\0nobody\0secret", WRONG),
        (b"\0nobody\0\0", "expected 3 tokens, got 4"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (b"", "expected 3 tokens, got 1"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"bob\0alice\0secret", "authorization id"),
        (b"\0alice\0\xff", "UTF-8"),
    ],
)
def test_plain_refuses_everything_else(token: bytes, text: str) -> None:
    with pytest.raises(LoginFailed, match=text):
        PlainServer(USERS).evaluate(token)


KEY = SigningKey(now_s=NOW)
RULES = TokenRules(audiences=("kafka",), issuer="us")


def key_set(*keys: SigningKey) -> KeySet:
    made = KeySet("file:///nowhere")
    made.keys = {key.id: key.entry for key in keys}
    return made


KEY_SET = key_set(KEY)


def checker(rules: TokenRules = RULES, keys: KeySet | None = KEY_SET) -> TokenChecker:
    return TokenChecker(rules, keys, ManualClock(int(NOW * 1000)))


def test_a_token_that_is_right_names_its_user_and_when_it_expires() -> None:
    found = checker().check(KEY.token(exp=NOW + 60))
    assert found.user == "alice"
    assert abs(found.expires_ms - (NOW + 60) * 1000) < 2


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (KEY.token(exp=NOW - 100), "expired"),
        (KEY.token(exp=None), "no expiry"),
        (KEY.token(exp="soon"), "not a time"),
        (KEY.token(nbf=NOW + 1000), "not valid yet"),
        (KEY.token(aud=None), "audience"),
        (KEY.token(aud=["other"]), "audience"),
        (KEY.token(iss="them"), "issuer"),
        (KEY.token(sub=None), "no claim sub"),
        (KEY.token(headers={"kid": "k2"}), "unknown key"),
        (SigningKey(now_s=NOW).token(), "invalid signature"),
        (unsecured_token("alice", WallMs(int(NOW * 1000))), "not signed"),
        ("a.b", "malformed"),
        ("....", "malformed"),
        ("x" * 40_000, "too long"),
    ],
)
def test_a_token_that_is_not_right_is_refused(token: str, text: str) -> None:
    with pytest.raises(BadToken, match=text):
        checker().check(token)


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("key_id", [[], {}, 7, ["k1"]])
def test_a_token_whose_key_id_is_not_text_is_refused(key_id: object) -> None:
    header, claims = part({"alg": "RS256", "kid": key_id}), part({"sub": "alice"})
    with pytest.raises(BadToken, match="malformed"):
        checker().check(f"{header}.{claims}.AAAA")


def test_an_algorithm_that_the_key_is_not_for_is_refused() -> None:
    claims = part({"sub": "alice", "exp": NOW + 60, "aud": "kafka", "iss": "us"})
    for algorithm in ("HS256", "PS256", "ES256", "None"):
        header = part({"alg": algorithm, "kid": "k1"})
        with pytest.raises(BadToken):
            checker().check(f"{header}.{claims}.AAAA")


def test_a_key_in_the_tokens_own_header_is_not_used() -> None:
    from jwt.algorithms import RSAAlgorithm

    other = SigningKey(now_s=NOW)
    own = json.loads(RSAAlgorithm.to_jwk(other.private.public_key()))
    with pytest.raises(BadToken, match="unknown key"):
        checker().check(other.token(headers={"kid": "other", "jwk": own}))


def test_unsigned_tokens_are_accepted_only_by_an_explicit_setting() -> None:
    rules = TokenRules(unsecured=True)
    now_ms = int(NOW * 1000)
    assert checker(rules, None).check(unsecured_token("bob", WallMs(now_ms))).user == "bob"
    with pytest.raises(UserError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url"):
        checker(TokenRules(), None)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://issuer/keys", "expected an https: or file:"),
        ("ftp://issuer/keys", "expected an https: or file:"),
        ("https:///keys", "expected a host name"),
        ("https://inside/keys", "not allowed"),
        ("file:///etc/passwd", "not allowed"),
    ],
)
def test_keys_are_read_only_from_addresses_that_are_allowed(url: str, text: str) -> None:
    with pytest.raises(UserError, match=text):
        check_address("sasl.oauthbearer.jwks.endpoint.url", url, ["https://issuer/keys"])


OFFERED = """
import sys
from ottla.model.errors import UserError
from ottla.security.sasl.key_sets import KeySet
from ottla.security.sasl.tokens import TokenChecker, TokenRules
from tests.fakes.manual_time import ManualClock
if sys.argv[1] == "missing":
    sys.modules["jwt"] = None
try:
    TokenChecker(TokenRules(), KeySet("file:///nowhere"), ManualClock(0))
except UserError as error:
    print(error)
print({"jwt", "cryptography"} <= sys.modules.keys())
"""


@pytest.mark.parametrize(
    ("package", "said"),
    [
        ("there", "True"),
        ("missing", "OAUTHBEARER needs the package PyJWT: pip install 'ottla[security]'\nFalse"),
    ],
)
def test_what_tokens_need_is_loaded_when_they_are_offered_not_by_the_first_login(
    package: str, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFERED, package], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == said


def test_a_refused_token_is_answered_with_its_status_then_with_failure() -> None:
    broker = BearerServer(checker().check)
    message = f"n,,\1auth=Bearer {KEY.token(exp=NOW - 100)}\1\1".encode()
    assert broker.evaluate(message).token == INVALID.encode()
    with pytest.raises(LoginFailed, match="invalid_token") as refused:
        broker.evaluate(b"\1")
    assert refused.value.reason == "token has expired"


def test_bearer_needs_a_token_and_no_other_identity() -> None:
    good = KEY.token()
    assert (
        BearerServer(checker().check).evaluate(f"n,a=alice,\1auth=Bearer {good}\1\1".encode()).user
        == "alice"
    )
    for message in (
        b"",
        b"n,,\1auth=Basic x\1\1",
        b"n,,\1\1",
        f"n,a=bob,\1auth=Bearer {good}\1\1".encode(),
        f"n,,\1auth=Bearer {good}".encode(),
    ):
        with pytest.raises(LoginFailed):
            BearerServer(checker().check).evaluate(message)
