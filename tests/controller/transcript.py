"""A small language for what happens to a controller, and how its steps are written down.

A transcript is a sequence of blocks: one line that says what happens, `----`, and what came of it.
`tests/scenarios/controller/*.txt` hold them; REWRITE=1 writes them anew, and the diff is reviewed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from ottla.controller.effects import LeaderAndIsr, Send, Step, StopReplica, UpdateMetadata
from ottla.controller.events import (
    BalanceDue,
    BrokerBehind,
    DeletionRequested,
    DeletionsFound,
    Elected,
    ElectionKind,
    ElectionRequested,
    Event,
    LeaderAndIsrReplied,
    LiveBrokersChanged,
    LogDirFailuresFound,
    MorePartitions,
    NewTopic,
    PartitionCreationRequested,
    PartitionsReloaded,
    ReassignmentRequested,
    RulesChanged,
    ShutdownRequested,
    StatesChanged,
    StatesReloaded,
    StopReplicaReplied,
    TopicCreationRequested,
    TopicsReloaded,
    UncleanElectionEnabled,
)
from ottla.controller.machine import on_event
from ottla.controller.placement import PlacementRandomness
from ottla.controller.state import (
    BrokerState,
    ControllerState,
    Leadership,
    PartitionAssignment,
    Replicas,
    TopicAssignment,
    TopicRules,
)
from ottla.controller.topics import Created
from ottla.model.errors import ErrorCode, KafkaError
from ottla.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    TopicPartition,
)
from ottla.store.nodes import EndpointNode, StateNode, TopicNode
from ottla.store.port import Create, Delete, Op, Set


class Block(NamedTuple):
    command: str
    expected: str


def parse(text: str) -> tuple[str, list[Block]]:
    """The heading, and the blocks."""
    heading, *parts = text.split("\n> ")
    blocks = []
    for part in parts:
        command, _, expected = part.partition("\n----\n")
        blocks.append(Block(command.strip(), expected.rstrip()))
    return heading.rstrip(), blocks


def write(heading: str, blocks: Iterable[Block]) -> str:
    text = "\n\n".join(f"> {command}\n----\n{described}" for command, described in blocks)
    return f"{heading}\n\n{text}\n"


class Actor:
    """Runs commands against the machine and remembers the state."""

    def __init__(self) -> None:
        self.state = ControllerState(BrokerId(1))
        self._last_request_id = 0

    def run(self, command: str) -> str:
        word, *rest = command.split()
        if word == "show":
            return "\n".join(show(self.state))
        event = COMMANDS[word](self, rest)
        step = on_event(self.state, event)
        self.state = step.state
        return "\n".join(render(step)) or "nothing"

    def request_id(self) -> int:
        self._last_request_id += 1
        return self._last_request_id

    def leadership(self, tp: TopicPartition) -> Leadership:
        leadership = self.state.topics[tp.topic].partitions[tp.partition].leadership
        assert leadership is not None
        return leadership


def brokers(words: Iterable[str]) -> dict[BrokerId, BrokerState]:
    """`2@7:rack` is broker 2, registered with epoch 7, in that rack; the epoch is 0 if not said."""
    parsed = {}
    for word in words:
        name, _, rack = word.partition(":")
        id, _, epoch = name.partition("@")
        broker = BrokerId(int(id))
        port = 9092
        if epoch.endswith("!"):  # registered again with another address
            epoch, port = epoch[:-1], 9093
        parsed[broker] = BrokerState(
            broker,
            BrokerEpoch(int(epoch or 0)),
            (EndpointNode("PLAINTEXT", f"host{id}", port),),
            rack or None,
        )
    return parsed


def replicas(text: str) -> Replicas:
    return tuple(BrokerId(int(id)) for id in text.split(",") if id)


def tp(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def _pairs(words: Iterable[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words)
    return {key: value for key, _, value in pairs}


def _elected(actor: Actor, words: list[str]) -> Elected:
    """elected EPOCH BROKER... [topic-N=AR/leader/isr[/adding/removing]]... [deleting=TOPIC]"""
    epoch, *rest = words
    live = brokers(word for word in rest if "=" not in word)
    pairs = _pairs(word for word in rest if "=" in word)
    deleting = frozenset(filter(None, pairs.pop("deleting", "").split(",")))
    topics: dict[str, TopicAssignment] = {}
    for name, text in pairs.items():
        partition_id = tp(name)
        current = topics.get(
            partition_id.topic, TopicAssignment(topic_id(partition_id.topic), {}, 0)
        )
        partition = _stored(text)
        topics[partition_id.topic] = replace(
            current, partitions={**current.partitions, partition_id.partition: partition}
        )
    return Elected(ControllerEpoch(int(epoch)), 7, live, topics, deleting)


def _stored(text: str) -> PartitionAssignment:
    assignment, leader, isr, adding, removing, *_ = [*text.split("/"), "", "", "", "", ""]
    leadership = None
    if leader:
        leadership = Leadership(
            BrokerId(int(leader)), replicas(isr), LeaderEpoch(5), ControllerEpoch(1), 10
        )
    return PartitionAssignment(
        replicas(assignment), replicas(adding), replicas(removing), leadership=leadership
    )


def _create(actor: Actor, words: list[str]) -> Event:
    name, *rest = words
    pairs = _pairs(rest)
    manual = {int(key): replicas(value) for key, value in pairs.items() if key.isdigit()}
    config = {key: value for key, value in pairs.items() if "." in key}
    new = NewTopic(
        name,
        int(pairs.get("partitions", -1)),
        int(pairs.get("replicas", -1)),
        manual,
        config,
        topic_id(f"{name}2" if name in actor.state.topics else name),  # a new one each time
        PlacementRandomness(0, 0),
    )
    return TopicCreationRequested(actor.request_id(), (new,), "validate-only" in rest)


def _more(actor: Actor, words: list[str]) -> Event:
    name, total, *rest = words
    chosen = tuple(replicas(word) for word in rest) or None
    return PartitionCreationRequested(
        actor.request_id(), (MorePartitions(name, int(total), chosen),)
    )


def _found(actor: Actor, words: list[str]) -> Event:
    """found TOPIC-N=AR ...: topics somebody wrote; `gone TOPIC` takes one away."""
    topics: dict[str, TopicAssignment] = {}
    for name, text in _pairs(words).items():
        partition_id = tp(name)
        current = topics.get(
            partition_id.topic, TopicAssignment(topic_id(partition_id.topic), {}, 0)
        )
        grown = {**current.partitions, partition_id.partition: PartitionAssignment(replicas(text))}
        topics[partition_id.topic] = replace(current, partitions=grown)
    return TopicsReloaded(frozenset(actor.state.topics) | topics.keys(), topics)


def _gone(actor: Actor, words: list[str]) -> Event:
    return TopicsReloaded(frozenset(actor.state.topics) - set(words), {})


def _rewritten(actor: Actor, words: list[str]) -> Event:
    """rewritten TOPIC N=AR ...: somebody added these partitions to the topic's node."""
    name, *rest = words
    topic = actor.state.topics[name]
    added = {int(key): PartitionAssignment(replicas(value)) for key, value in _pairs(rest).items()}
    version = topic.version + 1
    return PartitionsReloaded(
        name, replace(topic, partitions={**topic.partitions, **added}, version=version)
    )


def _isr(actor: Actor, words: list[str]) -> Event:
    return StatesChanged(_states(actor, words), ("/isr_change_notification/isr_change_0",))


def _reread(actor: Actor, words: list[str]) -> Event:
    return StatesReloaded(_states(actor, words))


def _states(actor: Actor, words: list[str]) -> dict[TopicPartition, Leadership]:
    states = {}
    for name, isr in _pairs(words).items():
        current = actor.leadership(tp(name))
        states[tp(name)] = replace(current, isr=replicas(isr), version=current.version + 1)
    return states


def _codes(words: Iterable[str]) -> dict[TopicPartition, ErrorCode]:
    return {tp(name): ErrorCode[code] for name, code in _pairs(words).items()}


def _became(actor: Actor, words: list[str]) -> Event:
    id = BrokerId(int(words[0]))
    current = actor.state.brokers.get(id)
    epoch = BrokerEpoch(0) if current is None else current.epoch
    return LeaderAndIsrReplied(id, epoch, _codes(words[1:]))


def _stopped(actor: Actor, words: list[str]) -> Event:
    id = BrokerId(int(words[0]))
    current = actor.state.brokers.get(id)
    epoch = BrokerEpoch(0) if current is None else current.epoch
    return StopReplicaReplied(id, epoch, _codes(words[1:]))


def _elect(actor: Actor, words: list[str]) -> Event:
    kind, *rest = words
    named = tuple(map(tp, rest)) or None
    return ElectionRequested(actor.request_id(), ElectionKind[kind.upper()], named)


def _move(actor: Actor, words: list[str]) -> Event:
    pairs = _pairs(words)
    moves = {tp(key): None if to == "cancel" else replicas(to) for key, to in pairs.items()}
    return ReassignmentRequested(actor.request_id(), moves)


def _shutdown(actor: Actor, words: list[str]) -> Event:
    id = BrokerId(int(words[0]))
    return ShutdownRequested(actor.request_id(), id, BrokerEpoch(int((words[1:] or ["0"])[0])))


def _unclean(actor: Actor, words: list[str]) -> Event:
    return UncleanElectionEnabled(words[0], words[1] == "true")


def _rules(actor: Actor, words: list[str]) -> Event:
    pairs = {key: value == "1" for key, value in _pairs(words).items()}
    return RulesChanged(
        replace(
            TopicRules(),
            delete_topic_enable=pairs.get("delete_topic_enable", True),
            unclean_leader_election_enable=pairs.get("unclean_leader_election_enable", False),
        )
    )


COMMANDS: Mapping[str, Callable[[Actor, list[str]], Event]] = {
    "elected": _elected,
    "returned": lambda actor, words: _elected(actor, words)._replace(restarted=True),
    "brokers": lambda _, words: LiveBrokersChanged(brokers(words)),
    "behind": lambda _, words: BrokerBehind(BrokerId(int(words[0]))),
    "create": _create,
    "more": _more,
    "found": _found,
    "gone": _gone,
    "rewritten": _rewritten,
    "delete": lambda actor, words: DeletionRequested({name: actor.request_id() for name in words}),
    "deletions": lambda _, words: DeletionsFound(frozenset(words)),
    "isr": _isr,
    "reread": _reread,
    "log-dir-failed": lambda _, words: LogDirFailuresFound(
        frozenset(brokers(words)), ("/log_dir_event_notification/log_dir_event_0",)
    ),
    "became": _became,
    "stopped": _stopped,
    "elect": _elect,
    "preferred-node": lambda _, words: ElectionRequested(
        None, ElectionKind.PREFERRED, tuple(map(tp, words))
    ),
    "balance": lambda _, __: BalanceDue(),
    "shutdown": _shutdown,
    "move": _move,
    "unclean": _unclean,
    "rules": _rules,
}


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"_")[:16])


# how it is written down


def render(step: Step) -> Iterator[str]:
    yield from (f"write  {_op(op)}" for op in step.writes)
    for send in step.sends:
        yield from _send(send)
    yield from (f"reply  {id_}: {_answer(answer)}" for id_, answer, _ in step.replies)
    yield from (f"warn   {text}" for text in step.warnings)


def show(state: ControllerState) -> Iterator[str]:
    leaving = f" leaving {_ids(state.shutting_down)}" if state.shutting_down else ""
    yield f"epoch {state.epoch} brokers {_ids(state.brokers)}{leaving}"
    for partition_id, partition in state.partitions():
        described = " ".join(
            f"{id}:{state.value}" for id, state in partition.replica_states.items()
        )
        led = "-" if partition.leadership is None else _leadership(partition.leadership)
        yield f"{partition_id} {partition.state.value} [{described}] {led}"
    for name, going in state.deletions.items():
        flags = [word for word in ("started", "ineligible") if getattr(going, word)]
        yield f"deleting {name} {' '.join(flags)}".rstrip()


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, sorted(ids)))


def _op(op: Op) -> str:
    if isinstance(op, Delete):
        return f"delete {op.path}"
    assert isinstance(op, Create | Set)
    verb = "create" if isinstance(op, Create) else f"set if version {op.version}"
    return f"{verb} {op.path}{_data(op.path, op.data)}"


def _data(path: str, data: bytes) -> str:
    if path.endswith("/state"):
        state = StateNode.decode(data)
        return f" leader={state.leader} epoch={state.leader_epoch} isr={_list(state.isr)}"
    if path.startswith("/brokers/topics/") and data:
        node = TopicNode.decode(data)
        moving = "".join(
            f" {word} {number}:{_list(brokers)}"
            for word, moves in (("adding", node.adding), ("removing", node.removing))
            for number, brokers in moves.items()
        )
        text = " ".join(f"{number}:{_list(ids)}" for number, ids in node.partitions.items())
        return f" {text}{moving}"
    return f" {data.decode()}" if data else ""


def _list(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _send(send: Send) -> Iterator[str]:
    match send:
        case LeaderAndIsr(broker, partitions, full):
            yield f"send   LeaderAndIsr to {broker}{' in full' if full else ''}"
            for led in partitions:
                assert led.partition.leadership is not None
                new = " new" if led.is_new else ""
                yield f"         {led.tp} {_leadership(led.partition.leadership)}{new}"
        case UpdateMetadata(to, published, full):
            yield f"send   UpdateMetadata to {_list(to)}{' in full' if full else ''}"
            for one in published:
                leader = one.partition.leadership
                described = "-" if leader is None else _leadership(leader)
                offline = f" offline={_list(one.offline)}" if one.offline else ""
                yield f"         {one.tp} {'deleted' if one.deleted else described}{offline}"
        case StopReplica(broker, stopped):
            yield f"send   StopReplica to {broker}"
            for stop in stopped:
                delete = " delete" if stop.delete else ""
                yield f"         {stop.tp} epoch={stop.leader_epoch}{delete}"


def _leadership(leadership: Leadership) -> str:
    return (
        f"leader={leadership.leader} epoch={leadership.leader_epoch} "
        f"isr={_list(leadership.isr)} v{leadership.version}"
    )


def _answer(answer: object) -> str:
    match answer:
        case dict():
            return (
                ", ".join(f"{key} {_answer(value)}" for key, value in answer.items()) or "nothing"
            )
        case frozenset():
            return ", ".join(sorted(map(str, answer))) or "nothing left"
        case KafkaError(code=code, message=message):
            return f"{code.name} ({message})" if message else code.name
        case ErrorCode():
            return answer.name
        case Created(_, count, factor):
            return f"created with {count} partitions, {factor} replicas"
        case None:
            return "ok"
        case _:
            raise AssertionError(f"an answer nobody knows how to write down: {answer}")


SCENARIOS = Path(__file__).parents[1] / "scenarios" / "controller"


def play(name: str) -> None:
    """Run one story and compare; with REWRITE=1 in the environment, write down what happens now."""
    path = SCENARIOS / f"{name}.txt"
    heading, blocks = parse(path.read_text())
    actor = Actor()
    happened = [Block(block.command, actor.run(block.command)) for block in blocks]
    if os.environ.get("REWRITE"):
        path.write_text(write(heading, happened))
    assert happened == blocks
