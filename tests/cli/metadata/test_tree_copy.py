"""Promises of `ottla.cli.metadata.tree_copy`."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ottla.cli.metadata.tree_copy import (
    EPOCH_STEP,
    TreeNode,
    advanced,
    delete_tree,
    is_empty,
    read_tree,
    write_tree,
)
from ottla.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicPartition
from ottla.security.acl import Kind, Operation, Pattern, Permission, Rule
from ottla.security.authorizer import Authorizer
from ottla.shared_state.acl_store import AclStore
from ottla.shared_state.producer_ids import ProducerIds
from ottla.shared_state.registration import create_root_nodes, generate_broker_id
from ottla.store import paths
from ottla.store.embedded import EmbeddedStore
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.nodes import StateNode
from ottla.store.port import Create, Op, Store

NOTIFICATION_PREFIXES = {
    paths.CONFIG_CHANGES: paths.CONFIG_CHANGE_PREFIX,
    paths.ACL_CHANGES: paths.ACL_CHANGE_PREFIX,
    paths.ACL_CHANGES_PREFIXED: paths.ACL_CHANGE_PREFIX,
    paths.ISR_CHANGES: paths.ISR_CHANGE_PREFIX,
    paths.LOG_DIR_EVENTS: paths.LOG_DIR_EVENT_PREFIX,
    paths.TOKEN_CHANGES: paths.TOKEN_CHANGE_PREFIX,
}


async def filled() -> MemoryStore:
    store = MemoryStore(Ensemble())
    await store.start()
    await create_root_nodes(store, "the-cluster", Random(1))
    ops: list[Op] = [Create(paths.topic(f"t{n}"), b"x" * 1_000) for n in range(700)]
    await store.multi([*ops, Create(f"{paths.BROKER_IDS}/1", b"gone", ephemeral=True)])
    await store.create(f"{paths.CONFIG_CHANGES}/config_change_", b"gone", sequential=True)
    return store


@pytest.mark.real_loop
async def test_every_persistent_node_is_copied_and_nothing_else(tmp_path: Path) -> None:
    source, target = await filled(), EmbeddedStore.at(tmp_path)
    await target.start()
    assert await is_empty(target)
    await write_tree(target, await read_tree(source))
    assert await read_tree(target) == await read_tree(source)
    assert len(await target.children(paths.TOPICS)) == 700
    assert await target.children(paths.BROKER_IDS) == []
    assert await target.children(paths.CONFIG_CHANGES) == []
    assert not await is_empty(target)
    await target.close()


@pytest.mark.real_loop
@pytest.mark.parametrize("parent", NOTIFICATION_PREFIXES)
async def test_changes_are_announced_afterwards_whatever_was_announced_before(
    parent: str, tmp_path: Path
) -> None:
    """Old notifications are deleted: a copy of the rest would have numbers that come again."""
    source, target = await filled(), EmbeddedStore.at(tmp_path)
    prefix = f"{parent}/{NOTIFICATION_PREFIXES[parent]}"
    if await source.get(parent) is None:
        await source.multi([Create(above) for above in ancestors(parent)])
    made = [await source.create(prefix, b"", sequential=True) for _ in range(9)]
    for path in made[:4]:
        await source.delete(path)
    await target.start()
    await write_tree(target, await read_tree(source))
    for _ in range(9):
        await target.create(prefix, b"", sequential=True)
    await target.close()


def ancestors(path: str) -> list[str]:
    """A path and those above it, parents first."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1)]


@pytest.mark.real_loop
async def test_broker_ids_generated_afterwards_are_new(tmp_path: Path) -> None:
    source, target = await filled(), EmbeddedStore.at(tmp_path)
    for _ in range(5):
        last = await generate_broker_id(source, 1_000)
    await target.start()
    await write_tree(target, await read_tree(source))
    assert await generate_broker_id(target, 1_000) == last + 1
    await target.close()


RULES = frozenset(
    Rule(kind, name, pattern, principal, host, operation, permission)
    for kind, operation in (
        (Kind.TOPIC, Operation.READ),
        (Kind.GROUP, Operation.ALL),
        (Kind.TRANSACTIONAL_ID, Operation.TWO_PHASE_COMMIT),
        (Kind.USER, Operation.CREATE_TOKENS),
    )
    for name in ("*", "a/b", "%2F", "ü", "User:them")
    for pattern in (Pattern.LITERAL, Pattern.PREFIXED)
    for principal, host, permission in (
        ("User:*", "10.0.0.7", Permission.DENY),
        ("User:CN=alice,O=x", "*", Permission.ALLOW),
    )
)


async def rules_in(store: Store) -> frozenset[Rule]:
    """As a broker reads them."""
    authorizer = Authorizer(in_force=True)
    await AclStore(store, authorizer).load()
    assert authorizer.rules is not None
    return frozenset(authorizer.rules.all)


@pytest.mark.spec("SEC-04")
@pytest.mark.real_loop
async def test_every_rule_is_copied_as_it_is_and_none_is_added(tmp_path: Path) -> None:
    source, target, back = await filled(), EmbeddedStore.at(tmp_path), MemoryStore(Ensemble())
    acls = AclStore(source, Authorizer(in_force=True))
    await acls.load()
    await acls.add(RULES)
    await target.start()
    await back.start()
    await write_tree(target, await read_tree(source))
    await write_tree(back, advanced(await read_tree(target)))
    assert await rules_in(target) == await rules_in(back) == RULES
    await target.close()


@pytest.mark.real_loop
async def test_a_tree_is_deleted_with_its_notifications() -> None:
    store = await filled()
    await store.delete(f"{paths.BROKER_IDS}/1")
    await delete_tree(store, await read_tree(store))
    assert await is_empty(store)


@pytest.mark.real_loop
async def test_an_older_tree_repeats_no_leader_epoch_and_no_producer_id() -> None:
    """The logs of the brokers know elections and producers that came after it was read."""
    source = await filled()
    state = StateNode(BrokerId(1), LeaderEpoch(7), (BrokerId(1),), ControllerEpoch(3))
    path = paths.partition_state(TopicPartition("t0", 0))
    tree = [*await read_tree(source), TreeNode(path, state.encode(), 5)]
    used = ProducerIds(source, BrokerId(1))
    last = [await used.next() for _ in range(2_500)][-1]
    for exported in (tree, await read_tree(source)):  # without and with reserved ids
        target = MemoryStore(Ensemble())
        await target.start()
        await write_tree(target, [n for n in advanced(exported) if n.path != path])
        assert await ProducerIds(target, BrokerId(1)).next() > last
    [node] = [node for node in advanced(tree) if node.path == path]
    raised = state._replace(leader_epoch=LeaderEpoch(7 + EPOCH_STEP))
    assert StateNode.decode(node.data) == raised
