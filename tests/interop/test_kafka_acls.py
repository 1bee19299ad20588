"""Access rules with Ottla and with Apache Kafka: our commands beside Kafka's own, our admin, and
librdkafka's."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported, not declared so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import ottla
from ottla import AclFilter, AclRule, ErrorCode, KafkaError
from ottla.cli.kafka import main
from tests.interop.tools_in_one import KafkaTools
from tools import kafka_cache, nodes

pytestmark = pytest.mark.timeout(180, method="thread")

ACLS: Final = "kafka-acls"
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ALICE: Final = ("--allow-principal", "User:alice")
_WAIT_S: Final = 20.0

Ours = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module", params=["ottla", "kafka"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[nodes.Node]:
    """A broker with an authorizer, where the tests themselves may do everything."""
    start = nodes.kafka if request.param == "kafka" else nodes.ottla
    try:
        with start(tmp_path_factory.mktemp(request.param), SETTINGS) as node:
            yield node
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def theirs(guarded: nodes.Node) -> Iterator[KafkaTools]:
    try:
        tools = KafkaTools(guarded.bootstrap)
    except kafka_cache.Missing as missing:
        pytest.skip(str(missing))
    yield tools
    tools.close()


@pytest.fixture
def ours(guarded: nodes.Node, capfd: pytest.CaptureFixture[str]) -> Ours:
    """Runs our kafka-acls.sh: exit code, stdout, stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main.run(f"{ACLS}.sh", [*words, "--bootstrap-server", guarded.bootstrap])
        return (code, *capfd.readouterr())

    return run


@pytest.fixture
def admin(guarded: nodes.Node) -> Iterator[ottla.Admin]:
    """An admin of a cluster without rules."""
    with ottla.Admin(bootstrap_servers=guarded.bootstrap) as admin:
        clear(admin)
        yield admin
        clear(admin)


def clear(admin: ottla.Admin) -> None:
    admin.delete_acls([AclFilter()]).all()
    until(admin, 0)


def until(admin: ottla.Admin, count: int) -> list[AclRule]:
    """Kafka's brokers hear of a change a moment after it was acknowledged."""
    end = time.monotonic() + 30
    while len(found := admin.describe_acls()) != count:
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found


def in_order(text: str) -> list[list[str]]:
    """What was said, in order: Kafka's tool shows resources, and what they have, in none."""
    blocks = []
    for block in re.split(r"\n(?=\S)", text.removesuffix("\n")):
        head, *lines = block.split("\n")
        mark = "first is indented" if lines and lines[0].startswith(" \t") else "as the others"
        blocks.append([head, mark, *sorted(line.removeprefix(" ") for line in lines)])
    return sorted(blocks)


@pytest.mark.spec("SEC-04")
@pytest.mark.parametrize(
    ("words", "count"),
    [
        ((*ALICE, "--topic", "orders"), 1),
        ((*ALICE, "--operation", "read", "--operation", "Describe", "--topic", "t"), 2),
        ((*ALICE, "--topic", "ord", "--resource-pattern-type", "prefixed"), 1),
        ((*ALICE, "--allow-host", "10.0.0.7", "--allow-host", "10.0.0.8", "--group", "*"), 2),
        (("--deny-principal", "User:*", "--deny-host", "::1", "--cluster"), 1),
        ((*ALICE, "--deny-principal", "User:eve", "--topic", "a", "--transactional-id", "b"), 4),
        ((*ALICE, "--producer", "--topic", "t"), 3),
        ((*ALICE, "--producer", "--idempotent", "--topic", "t", "--transactional-id", "x"), 6),
        ((*ALICE, "--consumer", "--topic", "t", "--topic", "u", "--group", "g"), 5),
        ((*ALICE, "--consumer", "--producer", "--topic", "t", "--group", "g"), 5),
        ((*ALICE, "--operation", "CreateTokens", "--user-principal", "User:bob"), 1),
    ],
)
def test_adding_listing_and_removing_look_the_same(
    ours: Ours, theirs: KafkaTools, admin: ottla.Admin, words: tuple[str, ...], count: int
) -> None:
    said = theirs.done(ACLS, "--add", *words)
    rules = until(admin, count)
    for listing in (
        ("--list",),
        ("--list", "--topic", "t"),
        ("--list", "--cluster"),
        ("--list", "--topic", "orders", "--resource-pattern-type", "match"),
        ("--list", "--principal", "User:alice", "--principal", "User:nobody"),
    ):
        code, told, _ = ours(*listing)
        assert code == 0
        assert in_order(told) == in_order(theirs.done(ACLS, *listing)), listing
    again = theirs.done(ACLS, "--add", *words)
    assert in_order(ours("--add", *words)[1]) == in_order(again)
    assert ours("--remove", *words, "--force")[:2] == (0, "")
    until(admin, 0)
    assert in_order(ours("--add", *words)[1]) == in_order(said)
    assert until(admin, count) == rules
    assert theirs.done(ACLS, "--remove", *words, "--force") == ""
    until(admin, 0)


@pytest.mark.parametrize(
    "words",
    [
        ("--list", "--add"),
        ("--add", *ALICE),
        ("--add", "--topic", "t"),
        ("--list", *ALICE),
        ("--add", *ALICE, "--producer", "--operation", "Read", "--topic", "t"),
        ("--add", *ALICE, "--producer", "--group", "g"),
        ("--add", *ALICE, "--consumer", "--topic", "t"),
        ("--add", *ALICE, "--idempotent", "--topic", "t"),
        ("--add", *ALICE, "--principal", "User:a", "--topic", "t"),
        ("--add", *ALICE, "--topic", "t", "--resource-pattern-type", "any"),
    ],
)
def test_mistakes_are_said_in_the_same_words(
    ours: Ours, theirs: KafkaTools, words: tuple[str, ...]
) -> None:
    code, _, err = ours(*words)
    said = theirs.run(ACLS, *words)
    assert (code, err.split("\n")[0]) == (said.returncode, said.stderr.split("\n")[0])


def test_what_is_no_principal_is_said_in_the_same_words(ours: Ours, theirs: KafkaTools) -> None:
    words = ("--add", "--allow-principal", "alice", "--topic", "t")
    code, out, _ = ours(*words)
    said = theirs.run(ACLS, *words)
    assert (code, out.split("\n")[0]) == (said.returncode, said.stdout.split("\n")[0])


@pytest.mark.spec("SEC-04", "TOOL-18")
def test_our_admin_adds_finds_and_deletes_rules(admin: ottla.Admin) -> None:
    read = AclRule.allow("User:alice", "read", "topic", "orders")
    deny = AclRule.deny("User:*", "write", "topic", "ord", pattern="prefixed", host="10.0.0.7")
    cluster = AclRule.allow("User:operator", "alter", "cluster")
    admin.create_acls([read, deny, cluster]).all()
    assert until(admin, 3) == sorted([read, deny, cluster])
    assert admin.describe_acls(AclFilter("topic", "orders", pattern="match")) == [deny, read]
    assert admin.describe_acls(AclFilter("topic", "orders")) == [read]
    assert admin.describe_acls(AclFilter(principal="User:operator")) == [cluster]
    nothing = AclFilter("group")
    gone = admin.delete_acls([AclFilter("topic", permission="deny"), nothing]).all()
    assert list(gone.values()) == [[deny], []]
    assert until(admin, 2) == [read, cluster]


def test_a_cluster_without_an_authorizer_refuses_rules(
    cluster_under_test: nodes.Node,
) -> None:
    with ottla.Admin(bootstrap_servers=cluster_under_test.bootstrap) as admin:
        with pytest.raises(KafkaError) as refused:
            admin.describe_acls()
        assert refused.value.code is ErrorCode.security_disabled
        rule = AclRule.allow("User:alice", "read", "topic", "orders")
        failures = [
            *admin.create_acls([rule]).failed.values(),
            *admin.delete_acls([AclFilter()]).failed.values(),
        ]
    codes = [failure.code for failure in failures if isinstance(failure, KafkaError)]
    assert codes == [ErrorCode.security_disabled] * 2


@pytest.mark.spec("SEC-04")
def test_librdkafka_adds_finds_and_deletes_rules(guarded: nodes.Node, admin: ottla.Admin) -> None:
    client = AdminClient({"bootstrap.servers": guarded.bootstrap, "log_level": 3})

    def binding(pattern: ResourcePatternType) -> AclBinding:
        return AclBinding(
            ResourceType.TOPIC,
            "orders",
            pattern,
            "User:alice",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )

    wanted = [binding(ResourcePatternType.LITERAL), binding(ResourcePatternType.PREFIXED)]
    for made in client.create_acls(wanted).values():
        assert made.result(_WAIT_S) is None
    assert until(admin, 2) == [
        AclRule.allow("User:alice", "read", "topic", "orders"),
        AclRule.allow("User:alice", "read", "topic", "orders", pattern="prefixed"),
    ]
    any_text: Any = None
    affecting = AclBindingFilter(
        ResourceType.TOPIC,
        "orders-2",
        ResourcePatternType.MATCH,
        any_text,
        any_text,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert client.describe_acls(affecting).result(_WAIT_S) == wanted[1:]
    [gone] = client.delete_acls([affecting]).values()
    assert gone.result(_WAIT_S) == wanted[1:]
    until(admin, 1)
