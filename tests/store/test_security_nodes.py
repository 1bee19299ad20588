"""Access rules as Kafka keeps them."""

from __future__ import annotations

import json

import pytest

from ottla.store.nodes import BadNode
from ottla.store.security_nodes import AclChangeNode, AclNode, RuleText

RULE = RuleText("User:alice", "Allow", "Read", "*")
STORED = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}


def without(field: str) -> dict[str, str]:
    """The stored rule but for this field."""
    return {name: text for name, text in STORED.items() if name != field}


def test_rules_are_kafkas_json_both_ways() -> None:
    node = AclNode([RULE, RULE._replace(operation="Write")])
    stored = {"version": 1, "acls": [STORED, STORED | {"operation": "Write"}]}
    assert json.loads(node.encode()) == stored
    assert AclNode.decode(node.encode()) == node
    assert AclNode.decode(json.dumps(stored | {"more": 1}).encode()) == node


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"acls":7}', b'{"acls":["x"]}'])
def test_what_cannot_be_read_is_said(data: bytes) -> None:
    with pytest.raises(BadNode):
        AclNode.decode(data)


@pytest.mark.parametrize(
    "node",
    [
        {"version": 2, "acls": [STORED]},
        {"version": 0, "acls": [STORED]},
        {"version": "1", "acls": [STORED]},
        {"acls": [STORED]},
        *({"version": 1, "acls": [without(field)]} for field in STORED),
        *({"version": 1, "acls": [STORED | {field: None}]} for field in STORED),
        *({"version": 1, "acls": [STORED | {field: 7}]} for field in STORED),
    ],
    ids=str,
)
def test_rules_of_another_format_or_in_part_are_not_taken_for_whole_ones(
    node: dict[str, object],
) -> None:
    """A denial without a principal would deny nobody, and a condition of a later format be lost."""
    with pytest.raises(BadNode):
        AclNode.decode(json.dumps(node).encode())


def test_a_note_of_a_name_is_plain_and_one_of_a_prefix_is_json() -> None:
    assert AclChangeNode("Topic", "orders", "LITERAL").encode() == b"Topic:orders"
    assert json.loads(AclChangeNode("Group", "g", "PREFIXED").encode()) == {
        "version": 1,
        "resourceType": "Group",
        "name": "g",
        "patternType": "PREFIXED",
    }
