"""What a peer must be allowed before its request is looked at."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.api.authorise import WRITE_TRANSACTIONS, check, on_cluster, on_group
from ottla.model.errors import ErrorCode, KafkaError
from ottla.net.request_slot import Peer
from ottla.security.acl import Kind, Operation, Pattern, Permission, Rule, Rules
from ottla.security.authorizer import Authorizer

PEER = Peer("10.0.0.1", 1, "PLAINTEXT", "PLAINTEXT")
REQUEST = SimpleNamespace(group_id="g", transactional_id="pay")
NEEDS = (*on_cluster(Operation.ALTER), WRITE_TRANSACTIONS, *on_group(Operation.READ))


def guarded(*allowed: tuple[Kind, str, Operation]) -> Authorizer:
    authorizer = Authorizer(in_force=True)
    who = (PEER.principal, PEER.address)
    authorizer.follow(
        Rules(
            Rule(kind, name, Pattern.LITERAL, *who, operation, Permission.ALLOW)
            for kind, name, operation in allowed
        )
    )
    return authorizer


@pytest.mark.spec("SEC-03", "SEC-04")
def test_the_first_need_that_a_peer_lacks_refuses_with_the_code_of_its_kind() -> None:
    allowed: list[tuple[Kind, str, Operation]] = []
    for need, code in (
        ((Kind.CLUSTER, "kafka-cluster", Operation.ALTER), 31),
        ((Kind.TRANSACTIONAL_ID, "pay", Operation.WRITE), 53),
        ((Kind.GROUP, "g", Operation.READ), 30),
    ):
        with pytest.raises(KafkaError) as refused:
            check(guarded(*allowed), PEER, NEEDS, REQUEST)
        assert refused.value.code == ErrorCode(code)
        allowed.append(need)
    check(guarded(*allowed), PEER, NEEDS, REQUEST)


def test_what_a_request_does_not_name_needs_nothing() -> None:
    check(guarded(), PEER, (WRITE_TRANSACTIONS,), SimpleNamespace(transactional_id=None))


def test_without_an_authorizer_a_request_is_not_even_looked_at() -> None:
    check(Authorizer(), PEER, NEEDS, None)
