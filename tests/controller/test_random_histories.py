"""Random histories of a cluster, decided by the machine: what must hold after every event."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from ottla.controller.effects import Step, StopReplica
from ottla.controller.machine import on_event
from ottla.controller.state import ControllerState
from ottla.model.ids import NO_BROKER, BrokerId, TopicPartition
from tests.controller.transcript import COMMANDS, Actor

BROKERS = range(1, 6)
EVENTS = 120


class Cluster(Actor):
    """Five brokers that come and go; replies arrive late, or never if the broker died."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice = Random(seed)
        self.epochs = dict.fromkeys(BROKERS, 1)
        self.alive = set(BROKERS)
        self.replies: list[tuple[int, int, TopicPartition]] = []
        self.history: list[str] = []
        self.created = 0
        self.happens(f"elected 1 {self.registered()}")

    def registered(self) -> str:
        return " ".join(f"{id}@{self.epochs[id]}" for id in sorted(self.alive))

    def happens(self, command: str) -> None:
        self.history.append(command)
        word, *rest = command.split()
        before = self.state
        step = on_event(before, COMMANDS[word](self, rest))
        self.state = step.state
        self._remember_replies(step)
        problems = list(broken(before, step))
        assert not problems, "\n".join([*self.history, "", *problems])

    def _remember_replies(self, step: Step) -> None:
        self.replies += [
            (send.broker, self.epochs[send.broker], stopped.tp)
            for send in step.sends
            if isinstance(send, StopReplica)
            for stopped in send.replicas
            if stopped.delete
        ]

    def random_event(self) -> None:
        partitions = [tp for tp, _ in self.state.partitions()]
        choices = [self.create, self.die, self.come_back, self.come_back, self.bounce, self.reply]
        if partitions:
            choices += [self.change_isr] * 4
            choices += [self.move, self.cancel, self.delete, self.shut_down, self.lose_directory]
            choices += [lambda: self.happens("balance"), lambda: self.happens("elect preferred")]
        self.dice.choice(choices)()

    def create(self) -> None:
        if self.created < 6 and len(self.alive) > 1:
            self.created += 1
            chosen = self.dice.sample(sorted(self.alive), min(3, len(self.alive)))
            self.happens(f"create t{self.created} 0={','.join(map(str, chosen))}")

    def die(self) -> None:
        if len(self.alive) > 1:
            self.alive.remove(self.dice.choice(sorted(self.alive - {1}) or [1]))
            self.happens(f"brokers {self.registered()}")

    def come_back(self) -> None:
        gone = sorted(set(BROKERS) - self.alive)
        if gone:
            back = self.dice.choice(gone)
            self.epochs[back] += 1
            self.alive.add(back)
            self.happens(f"brokers {self.registered()}")

    def bounce(self) -> None:
        self.epochs[self.dice.choice(sorted(self.alive))] += 1
        self.happens(f"brokers {self.registered()}")

    def reply(self) -> None:
        if self.replies:
            at = self.dice.randrange(len(self.replies))
            broker, epoch, tp = self.replies.pop(at)
            if broker in self.alive and self.epochs[broker] == epoch:
                self.happens(f"stopped {broker} {tp}=none")

    def change_isr(self) -> None:
        tp = self.a_partition()
        partition = self.state.topics[tp.topic].partitions[tp.partition]
        if partition.leader == NO_BROKER or self.is_deleted(tp):
            return
        able = [b for b in partition.replicas if self.state.is_online(b, tp)]
        able = [b for b in able if b not in self.state.shutting_down]
        others = [b for b in able if b != partition.leader and self.dice.random() < 0.8]
        isr = ",".join(map(str, [partition.leader, *others]))
        self.happens(f"isr {tp}={isr}")

    def move(self) -> None:
        chosen = self.dice.sample(sorted(self.alive), min(len(self.alive), 2))
        self.happens(f"move {self.a_partition()}={','.join(map(str, chosen))}")

    def cancel(self) -> None:
        self.happens(f"move {self.a_partition()}=cancel")

    def delete(self) -> None:
        if self.dice.random() < 0.3:
            self.happens(f"delete {self.a_partition().topic}")

    def shut_down(self) -> None:
        id = self.dice.choice(sorted(self.alive))
        self.happens(f"shutdown {id} {self.epochs[id]}")

    def lose_directory(self) -> None:
        tp = self.a_partition()
        if self.dice.random() < 0.3:
            holder = self.dice.choice(self.state.topics[tp.topic].partitions[0].replicas)
            if holder in self.alive:
                self.happens(f"became {holder} {tp}=kafka_storage_error")

    def is_deleted(self, tp: TopicPartition) -> bool:
        ongoing = self.state.deletions.get(tp.topic)
        return ongoing is not None and ongoing.started

    def a_partition(self) -> TopicPartition:
        return self.dice.choice([tp for tp, _ in self.state.partitions()])

    def settle(self) -> None:
        """All brokers restart, all replicas catch up, all replies arrive."""
        self.alive = set(BROKERS)
        self.epochs = {id: epoch + 1 for id, epoch in self.epochs.items()}
        self.happens(f"brokers {self.registered()}")
        for _ in range(12):
            for tp, partition in list(self.state.partitions()):
                if partition.leader != NO_BROKER and not self.is_deleted(tp):
                    self.happens(f"isr {tp}={','.join(map(str, partition.replicas))}")
            while self.replies:
                self.reply()


def broken(before: ControllerState, step: Step) -> Iterator[str]:
    """What should hold and does not."""
    after = step.state
    yield from (warning for warning in step.warnings if "illegal" in warning)
    for tp, partition in after.partitions():
        if tp.topic in after.deletions or partition.leadership is None:
            continue
        isr, leader = partition.isr, partition.leader
        if not isr or not set(isr) <= set(partition.replicas):
            yield f"{tp}: ISR {isr} of replicas {partition.replicas}"
        if leader != NO_BROKER and (leader not in isr or not after.is_online(leader, tp)):
            yield f"{tp}: leader {leader} with ISR {isr}"
        able = [b for b in isr if after.is_online(b, tp) and b not in after.shutting_down]
        if leader == NO_BROKER and able:
            yield f"{tp}: no leader although {able} could lead"
        old = before.topics[tp.topic].partitions.get(0) if tp.topic in before.topics else None
        was = None if old is None else old.leadership
        if was is not None and partition.leadership.leader_epoch < was.leader_epoch:
            yield f"{tp}: leader epoch went back"
    for send in step.sends:
        if isinstance(send, StopReplica):
            yield from _deleted_last(after, send)


def _deleted_last(state: ControllerState, stop: StopReplica) -> Iterator[str]:
    for stopped in stop.replicas:
        topic = state.topics.get(stopped.tp.topic)
        if stopped.delete and topic is not None and stopped.tp.topic not in state.deletions:
            partition = topic.partitions[stopped.tp.partition]
            if stop.broker in partition.isr or BrokerId(stop.broker) in partition.replicas:
                yield f"{stopped.tp}: deleted on {stop.broker}, ISR {partition.isr}"


@pytest.mark.spec("CTL-46", "CTL-51", "CTL-58", "CTL-62", "CTL-66", "CTL-69", "REP-73")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_leaders_are_in_sync_and_in_the_end_all_work_is_done(seed: int) -> None:
    cluster = Cluster(seed)
    for _ in range(EVENTS):
        cluster.random_event()
    cluster.settle()
    state = cluster.state
    story = "\n".join(cluster.history)
    assert not state.deletions, f"{story}\n{state.deletions}"
    assert state.offline_partition_count() == 0, story
    assert not [tp for tp, partition in state.partitions() if partition.is_moving], story
    assert all(partition.leader != NO_BROKER for _, partition in state.partitions()), story
