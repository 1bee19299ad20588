"""Access rules kept in the store."""

from __future__ import annotations

import asyncio
import json

import pytest

from ottla.model.errors import KafkaError
from ottla.security.acl import Filter, Kind, Operation, Pattern, Permission, Rule
from ottla.security.authorizer import Authorizer
from ottla.shared_state.acl_store import NOTIFICATIONS_RETAINED, AclStore
from ottla.store import paths
from ottla.store.memory import Ensemble, MemoryStore
from ottla.store.port import Session, StoreUnavailable
from tests.fakes.control_plane import settle, until

READ = Rule(
    Kind.TOPIC, "orders", Pattern.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
)
WRITE = READ._replace(operation=Operation.WRITE)
PREFIXED = READ._replace(
    kind=Kind.TRANSACTIONAL_ID,
    name="pay/",
    pattern=Pattern.PREFIXED,
    operation=Operation.TWO_PHASE_COMMIT,
    permission=Permission.DENY,
)
EVERYTHING = Filter(Kind.ANY, None, Pattern.ANY, None, None, Operation.ANY, Permission.ANY)


class Broker:
    """One broker's access rules, on a session of its own."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.store = MemoryStore(ensemble)
        self.authorizer = Authorizer(in_force=True)
        self.acls = AclStore(self.store, self.authorizer)

    async def start(self, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        await self.store.start()
        await self.acls.load()
        return tasks.create_task(self.acls.run())

    @property
    def rules(self) -> set[Rule]:
        assert self.authorizer.rules is not None
        return set(self.authorizer.rules.all)


@pytest.mark.spec("SEC-04")
async def test_a_rule_holds_here_at_once_soon_everywhere_and_in_the_next_life() -> None:
    ensemble = Ensemble()
    one, two, later = Broker(ensemble), Broker(ensemble), Broker(ensemble)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        assert one.rules == set()
        await one.acls.add([READ, PREFIXED])
        assert one.rules == {READ, PREFIXED}
        await until(lambda: two.rules == {READ, PREFIXED})
        await two.acls.add([READ, WRITE])
        await until(lambda: one.rules == {READ, WRITE, PREFIXED})
        running.append(await later.start(tasks))
        assert later.rules == {READ, WRITE, PREFIXED}
        for task in running:
            task.cancel()


async def test_rules_are_removed_by_filters_and_each_says_what_it_removed() -> None:
    broker = Broker(Ensemble())
    async with asyncio.TaskGroup() as tasks:
        running = await broker.start(tasks)
        await broker.acls.add([READ, WRITE, PREFIXED])
        writes = EVERYTHING._replace(operation=Operation.WRITE)
        nothing = EVERYTHING._replace(name="none")
        assert await broker.acls.remove([writes, nothing]) == [[WRITE], []]
        assert broker.rules == {READ, PREFIXED}
        assert await broker.acls.remove([EVERYTHING]) == [[READ, PREFIXED]]
        assert broker.rules == set()
        assert await broker.store.children(f"{paths.ACLS}/Topic") == []
        running.cancel()


async def test_nodes_are_kafkas_own() -> None:
    broker = Broker(Ensemble())
    await broker.store.start()
    await broker.acls.load()
    await broker.acls.add([READ, PREFIXED])
    literal = await broker.store.get("/kafka-acl/Topic/orders")
    prefixed = await broker.store.get("/kafka-acl-extended/prefixed/TransactionalId/pay%2F")
    assert literal is not None and prefixed is not None
    assert json.loads(literal.data) == {
        "version": 1,
        "acls": [
            {
                "principal": "User:alice",
                "permissionType": "Allow",
                "operation": "Read",
                "host": "*",
            }
        ],
    }
    [acl] = json.loads(prefixed.data)["acls"]
    assert (acl["permissionType"], acl["operation"]) == ("Deny", "TwoPhaseCommit")
    [note] = await broker.store.children(paths.ACL_CHANGES)
    change = await broker.store.get(f"{paths.ACL_CHANGES}/{note}")
    assert change is not None and change.data == b"Topic:orders"
    [note] = await broker.store.children(paths.ACL_CHANGES_PREFIXED)
    change = await broker.store.get(f"{paths.ACL_CHANGES_PREFIXED}/{note}")
    assert change is not None and json.loads(change.data)["patternType"] == "PREFIXED"


def stored(version: int = 1, **changed: object) -> bytes:
    """The node of one rule, with something wrong."""
    rule = {"principal": "User:eve", "permissionType": "Allow", "operation": "Read", "host": "*"}
    return json.dumps({"version": version, "acls": [rule | changed]}).encode()


async def test_of_a_node_that_cannot_be_read_nobody_gains_anything() -> None:
    broker = Broker(Ensemble())
    await broker.store.start()
    await broker.acls.load()
    await broker.acls.add([READ, READ._replace(name="others")])
    for text in (
        b"{",
        b'{"version":1,"acls":[{"operation":"Fly"}]}',
        b'{"version":1,"acls":[7]}',
        stored(version=2),
        stored(operation="Fly"),
        stored(operation=[]),
        stored(permissionType="Perhaps"),
        stored(permissionType="Deny", principal=None),
        stored(permissionType="Deny", host=None),
    ):
        await broker.store.set("/kafka-acl/Topic/orders", text)
        await broker.acls._read()
        denied = READ._replace(
            principal="User:*", operation=Operation.ALL, permission=Permission.DENY
        )
        assert broker.rules == {denied, READ._replace(name="others")}


async def test_a_node_that_cannot_be_read_is_not_written_over() -> None:
    broker, path = Broker(Ensemble()), "/kafka-acl/Topic/orders"
    await broker.store.start()
    await broker.acls.load()
    await broker.acls.add([READ, READ._replace(name="others")])
    for text in (stored(version=2), stored(operation="Fly"), b"{"):
        await broker.store.set(path, text)
        with pytest.raises(KafkaError, match=path):
            await broker.acls.add([WRITE])
        with pytest.raises(KafkaError, match=path):
            await broker.acls.remove([EVERYTHING])
        node = await broker.store.get(path)
        assert node is not None and node.data == text
    await broker.acls.add([READ._replace(name="third")])


async def test_many_changes_leave_few_notes() -> None:
    broker = Broker(Ensemble())
    await broker.store.start()
    await broker.acls.load()
    for number in range(NOTIFICATIONS_RETAINED + 20):
        await broker.acls.add([READ._replace(name=f"topic-{number}")])
    notes = await broker.store.children(paths.ACL_CHANGES)
    assert len(notes) <= NOTIFICATIONS_RETAINED + 1
    assert len(broker.rules) == NOTIFICATIONS_RETAINED + 20


async def test_two_brokers_that_change_one_resource_lose_nothing() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble), Broker(ensemble)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        rules = [READ._replace(principal=f"User:{number}") for number in range(20)]
        await asyncio.gather(
            *(broker.acls.add([rule]) for rule, broker in zip(rules, [one, two] * 10, strict=True))
        )
        await until(lambda: one.rules == two.rules == set(rules))
        for task in running:
            task.cancel()


@pytest.mark.parametrize("name", ["a/b", "%", "%2F", ".", "..", "*", "ü", "a b"])
def test_any_name_is_one_step_of_a_path(name: str) -> None:
    step = paths.quoted(name)
    assert "/" not in step and step not in (".", "..")
    assert paths.plain(step) == name


async def test_changes_are_heard_again_after_a_moment_without_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unavailable(*_: object) -> list[str]:
        raise StoreUnavailable("gone for a moment")

    ensemble = Ensemble()
    one, two = Broker(ensemble), Broker(ensemble)
    for broker in (one, two):
        await broker.store.start()
    await two.acls.load()
    with monkeypatch.context() as broken:
        broken.setattr(one.store, "watch_children", unavailable)
        with pytest.raises(StoreUnavailable):
            await one.acls.load()
    await one.acls.add([WRITE])
    await settle()
    one.acls._changed.clear()
    await two.acls.add([READ])
    await until(one.acls._changed.is_set)


@pytest.mark.spec("SEC-04")
async def test_after_a_suspended_session_changes_are_heard_again() -> None:
    ensemble = Ensemble()
    one, two = Broker(ensemble), Broker(ensemble)
    async with asyncio.TaskGroup() as tasks:
        running = [await one.start(tasks), await two.start(tasks)]
        two.store.turn(Session.SUSPENDED)
        await one.acls.add([READ])
        two.store.reconnect()
        await until(lambda: two.rules == {READ})
        await one.acls.add([WRITE, PREFIXED])
        await until(lambda: two.rules == {READ, WRITE, PREFIXED})
        for task in running:
            task.cancel()


async def test_without_an_authorizer_the_store_is_left_alone() -> None:
    store = MemoryStore(Ensemble())
    await store.start()
    await AclStore(store, Authorizer()).load()
    assert await store.get(paths.ACLS) is None
