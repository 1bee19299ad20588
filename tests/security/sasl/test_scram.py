"""SCRAM: both sides of it, without a connection."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import AuthenticationFailed
from ottla.security.delegation_tokens import (
    DelegationTokens,
    NewToken,
    TokenLifetimes,
    created,
)
from ottla.security.sasl.exchange import LoginFailed
from ottla.security.sasl.scram import (
    HASHES,
    SALT_BYTES,
    SHAPES_MAX,
    Credential,
    ScramClient,
    ScramCredentials,
    ScramServer,
    Shape,
    UnknownUsers,
    salted_password,
)
from tests.fakes.counted_calls import counted_calls
from tests.fakes.manual_time import ManualClock

SECRET = b"of the cluster"


async def at_once(work: Callable[[], bytes]) -> bytes:
    return work()


def credential(
    mechanism: str, password: str, salt: bytes = b"salt", count: int = 4096
) -> Credential:
    salted = salted_password(mechanism, password, salt, count)
    return Credential.of_salted(mechanism, salted, salt, count)


def server(mechanism: str = "SCRAM-SHA-256", **users: str) -> ScramServer:
    known = {name: credential(mechanism, password) for name, password in users.items()}
    return ScramServer(mechanism, known, "servernonce", UnknownUsers(SECRET, {}))


def client(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> ScramClient:
    return ScramClient(mechanism, user, password, "clientnonce", at_once)


def run(work: Awaitable[bytes | None]) -> bytes:
    """Of coroutines that never wait."""
    try:
        work.__await__().send(None)
    except StopIteration as done:
        result: bytes = done.value
        return result
    raise AssertionError("it waits")


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "Zoë"])
def test_who_knows_the_password_is_let_in_and_knows_the_broker(mechanism: str, user: str) -> None:
    broker, ours = server(mechanism, **{user: "secret"}), client(user, "secret", mechanism)
    challenge = broker.evaluate(run(ours.first()))
    assert challenge.user is None
    last = broker.evaluate(run(ours.evaluate(challenge.token)))
    assert last.user == user
    assert run(ours.evaluate(last.token)) is None


def failure(broker: ScramServer, *tokens: bytes) -> LoginFailed:
    with pytest.raises(LoginFailed) as refused:
        for token in tokens:
            broker.evaluate(token)
    return refused.value


@pytest.mark.spec("SEC-05")
def test_an_unknown_user_fails_as_late_and_in_the_same_words_as_a_wrong_password() -> None:
    texts = []
    for user in ("alice", "nobody"):
        broker, ours = server(alice="secret"), client(user, "wrong")
        challenge = broker.evaluate(run(ours.first()))
        assert challenge.token.startswith(b"r=clientnonceservernonce,s=")
        texts.append(str(failure(broker, run(ours.evaluate(challenge.token)))))
    assert (
        texts[0]
        == texts[1]
        == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism SCRAM-SHA-256"
        )
    )


def work_of(login: Callable[[], object]) -> Counter[str]:
    """What a login calls, hashing and comparing above all; its time is the machine's."""
    with counted_calls() as calls:
        login()
    return calls


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize("mechanism", HASHES)
def test_a_login_as_an_unknown_user_is_the_same_work_as_one_with_a_wrong_password(
    mechanism: str,
) -> None:
    users = ("alice", "nobdy")  # names as long: so much is on the wire anyway
    directory = ScramCredentials()
    directory.secret = SECRET
    directory.set_user("alice", {mechanism: str(credential(mechanism, "secret", bytes(24)))})

    def failed_login(user: str) -> None:
        unknown = directory.unknown(mechanism)
        broker = ScramServer(mechanism, directory.of(mechanism), "servernonce", unknown)
        challenge = broker.evaluate(f"n,,n={user},r=clientnonce".encode())
        assert challenge.user is None
        proof = base64.b64encode(bytes(32 if mechanism == "SCRAM-SHA-256" else 64)).decode()
        failure(broker, f"c=biws,r=clientnonceservernonce,p={proof}".encode())

    for user in users:
        failed_login(user)  # what is computed once is not counted
    known, unknown = (work_of(lambda user=user: failed_login(user)) for user in users)  # type: ignore[misc]
    assert known == unknown
    assert known["hmac_digest"] >= 4 and known["compare_digest"] == 1, known


def test_the_salt_of_an_unknown_user_stays_the_same_and_differs_between_users() -> None:
    first = [server().evaluate(run(client(user, "x").first())).token for user in "aab"]
    assert first[0] == first[1] != first[2]


class Directory:
    """A cluster's users, of whom only the shape of their credentials matters."""

    mechanism = "SCRAM-SHA-512"

    def __init__(self, *shapes: Shape) -> None:
        self.credentials = ScramCredentials()
        self.credentials.secret = SECRET
        for number, shape in enumerate(shapes):
            self.add(f"user{number}", shape)

    def add(self, user: str, shape: Shape) -> None:
        credential = Credential(bytes(shape.salt_bytes), bytes(64), bytes(64), shape.iterations)
        self.credentials.set_user(user, {self.mechanism: str(credential)})

    def asked(self, user: str, more: str = "") -> tuple[bytes, int]:
        """The salt and the iterations that a login as this user is answered with."""
        users = self.credentials.of(self.mechanism)
        unknown, tokens = self.credentials.unknown(self.mechanism), self.credentials.tokens
        login = ScramServer(self.mechanism, users, "servernonce", unknown, tokens)
        answer = login.evaluate(f"n,,n={user},r=x{more}".encode()).token.decode()
        _, salt, iterations = answer.split(",")
        return base64.b64decode(salt.removeprefix("s=")), int(iterations.removeprefix("i="))

    def shape(self, user: str, more: str = "") -> Shape:
        salt, iterations = self.asked(user, more)
        return Shape(len(salt), iterations)


OURS = Shape(SALT_BYTES, 8_192)
FEW = Shape(SALT_BYTES, 4_096)
KAFKAS = Shape(26, 4_096)
STRANGERS = [f"stranger{number}" for number in range(200)]


@pytest.mark.spec("SEC-05")
@pytest.mark.parametrize(
    "shapes",
    [(), (OURS,), (FEW,), (KAFKAS,), (OURS, FEW, KAFKAS), (OURS, OURS, OURS, FEW)],
)
def test_the_first_answer_to_an_unknown_user_is_of_a_shape_that_users_have(
    shapes: tuple[Shape, ...],
) -> None:
    directory = Directory(*shapes)
    seen = Counter(directory.shape(user) for user in STRANGERS)
    assert seen.keys() == set(shapes or [OURS])
    for shape in shapes:  # and as often as they have it
        share = shapes.count(shape) / len(shapes)
        assert abs(seen[shape] / len(STRANGERS) - share) < 0.12
    again = Directory(*reversed(shapes))  # another broker, which read the users in another order
    assert [again.asked(user) for user in STRANGERS] == [
        directory.asked(user) for user in STRANGERS
    ]


@pytest.mark.spec("SEC-05", "SEC-06")
def test_the_first_answer_to_an_unknown_token_is_of_the_shape_of_tokens() -> None:
    clock = ManualClock(5_000)
    tokens = DelegationTokens("a key of tokens", clock)
    new = NewToken("User:alice", "User:alice")
    token = created(new, bytes(16), clock.wall_ms(), TokenLifetimes(1_000, 1_000))
    tokens.put([token])
    directory = Directory(KAFKAS)
    directory.credentials.tokens = tokens
    shape = directory.shape(token.id, ",tokenauth=true")
    for user in STRANGERS[:20]:
        assert directory.shape(user, ",tokenauth=true") == shape


@pytest.mark.spec("SEC-05")
def test_one_more_user_changes_what_few_unknown_users_are_asked() -> None:
    directory = Directory(*[OURS] * 60, *[FEW] * 40)
    before = {user: directory.asked(user) for user in STRANGERS}
    directory.add("alice", FEW)
    changed = [user for user in STRANGERS if directory.asked(user) != before[user]]
    assert len(changed) <= 5


@pytest.mark.spec("SEC-05")
def test_unknown_users_forget_the_shapes_of_users_who_left() -> None:
    directory = Directory(OURS, FEW)
    directory.add("user1", KAFKAS)
    assert {directory.shape(user) for user in STRANGERS} == {OURS, KAFKAS}
    directory.credentials.keep_only(["user0"])
    assert {directory.shape(user) for user in STRANGERS} == {OURS}


def test_unknown_users_are_spread_over_a_bounded_number_of_shapes() -> None:
    shapes = [Shape(SALT_BYTES, 4_096 + number) for number in range(2 * SHAPES_MAX)]
    directory = Directory(*shapes, *shapes[:SHAPES_MAX])
    assert {directory.shape(user) for user in STRANGERS} <= set(shapes[:SHAPES_MAX])


MALFORMED = [
    b"",
    b"\xff\xfe",
    b"n,,n=alice",
    b"n,,n=,r=x",
    b"n,,n=al=ice,r=x",
    b"p=tls-unique,,n=alice,r=x",
    b"n,a=bob,n=alice,r=x",
    b"n,,n=alice,r=x,tokenauth=true",
    b"n,,n=" + b"a" * 9000 + b",r=x",
]


@pytest.mark.parametrize("token", MALFORMED)
def test_a_first_message_that_is_not_right_is_refused(token: bytes) -> None:
    failure(server(alice="secret"), token)


@pytest.mark.parametrize(
    "final",
    [
        b"c=biws,r=clientnonceservernonceX,p=AAAA",
        b"c=biws,r=clientnonce,p=AAAA",
        b"c=AAAA,r=clientnonceservernonce,p=AAAA",
        b"c=biws,r=clientnonceservernonce,p=!!!!",
        b"c=biws,r=clientnonceservernonce,p=A",
        b"c=biws,r=clientnonceservernonce,p=",
        b"v=x",
    ],
)
def test_a_final_message_that_was_altered_is_refused(final: bytes) -> None:
    broker = server(alice="secret")
    failure(broker, run(client("alice", "secret").first()), final)


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_no_bytes_that_were_not_computed_from_the_password_let_anybody_in(
    tokens: list[bytes],
) -> None:
    broker = server(alice="secret")
    try:
        for token in (b"n,,n=alice,r=x", *tokens):
            assert broker.evaluate(token).user is None
    except LoginFailed:
        pass


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (b"r=othernonce,s=c2FsdA==,i=4096", "altered the nonce"),
        (b"r=clientnonce,s=c2FsdA==,i=4096", "altered the nonce"),
        (b"r=clientnoncex,s=c2FsdA==,i=999999999", "iterations"),
        (b"r=clientnoncex,s=c2FsdA==,i=1", "iterations"),
        (b"r=clientnoncex,s=c,i=4096", "malformed salt"),
        (b"e=other-error", "malformed message"),
    ],
)
def test_our_client_does_not_trust_a_hostile_broker(challenge: bytes, text: str) -> None:
    ours = client("alice", "secret")
    run(ours.first())
    with pytest.raises(AuthenticationFailed, match=text):
        run(ours.evaluate(challenge))


def test_our_client_notices_a_broker_that_does_not_know_the_password() -> None:
    ours = client("alice", "secret")
    run(ours.first())
    run(ours.evaluate(b"r=clientnoncex,s=c2FsdA==,i=4096"))
    with pytest.raises(AuthenticationFailed, match="impostor"):
        run(ours.evaluate(b"v=AAAA"))


def test_a_credential_has_kafkas_text_and_is_not_shown() -> None:
    made = credential("SCRAM-SHA-256", "secret", bytes(8))
    assert Credential.parse(str(made)) == made
    assert str(made).startswith("salt=AAAAAAAAAAA=,stored_key=")
    assert str(made).endswith(",iterations=4096")
    assert "stored" not in repr(made)
    with pytest.raises(ValueError, match="expected salt"):
        Credential.parse("salt=x")
