"""Three `ottla serve` processes, one ZooKeeper path, and a proxy on every link between them.

Owns: the processes, the proxies, and one session with ZooKeeper that looks at the cluster's state.
Never: produces or consumes; `load` and `transacting` do, at the brokers' own addresses, which are
not behind a proxy.

Broker N listens on 127.0.0.(N+1). In links it is called `broker-N`, the ensemble `zookeeper`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from ottla.testing.history import Event, check
from ottla.testing.history.replicas import differences
from tests.cluster.load import Load, create_topic
from tests.cluster.process import BrokerProcess, wait_for
from tests.cluster.proxies import Address, Proxies
from tests.cluster.secure_cluster import ClusterSecurity
from tests.store.zookeeper_server import Ensemble
from tools.nodes import free_ports

ZOOKEEPER: Final = "zookeeper"
IDS: Final = (1, 2, 3)
SESSION_MS: Final = 2_500
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "zookeeper.connection.timeout.ms": "30000",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "controller.socket.timeout.ms": "5000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",
}
ROUTED: Final = str(Path(__file__).with_name("routed_ottla.py"))
RECOVERY_S: Final = 60.0
RETRY: Final = {"max_tries": -1, "max_delay": 0.5}
"""Of the session that looks: scenarios take the quorum away, and bring it back."""


class PartitionState(NamedTuple):
    """The state node of a partition in ZooKeeper; leader -1: there is none."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


def host_of(broker: int) -> str:
    return f"127.0.0.{broker + 1}"


def name_of(broker: int) -> str:
    return f"broker-{broker}"


class ThreeBrokers:
    """A cluster of three, started by `with`; every fault is healed at the end of the block."""

    def __init__(
        self,
        ensemble: Ensemble,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        security: ClusterSecurity | None = None,
    ) -> None:
        """With `security` there is nothing but SASL_SSL."""
        self.ensemble = ensemble
        self.security = security
        self.path = f"/{folder.name}"
        self.proxies = Proxies()
        self.brokers = {
            id: BrokerProcess(
                folder / name_of(id),
                {
                    **SETTINGS,
                    "broker.id": str(id),
                    "zookeeper.connect": f"{ensemble.address}{self.path}",
                    "metrics.port": str(free_ports(1, host_of(id))[0]),
                    **({} if security is None else security.of_brokers),
                    **(settings or {}),
                },
                host=host_of(id),
            )
            for id in IDS
        }
        if security is not None:
            for broker in self.brokers.values():
                broker.listeners = [f"SASL_SSL://{broker.address}"]
        self._stack = ExitStack()
        self._zookeeper = self._new_session()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.ensemble.restore)
            stack.enter_context(self.proxies)
            self._zookeeper.start(30)
            stack.callback(self._end_session)
            self._route()
            if self.security is not None:
                self.security.add_users(f"{self.ensemble.address}{self.path}")
            for broker in self.brokers.values():
                stack.push(broker)
                broker.launch()
            self.wait_until_ready(*IDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            print(self.describe_if_possible(), file=sys.stderr)
        self._stack.close()

    def look_again(self) -> None:
        """With a new session: ZooKeeper refuses one that has seen later transactions than it has.

        For an ensemble that lost its data.
        """
        self._end_session()
        self._zookeeper = self._new_session()
        self._zookeeper.start(30)

    def _new_session(self) -> KazooClient:
        return KazooClient(
            hosts=self.ensemble.address,
            timeout=4.0,
            connection_retry=RETRY,
            command_retry={**RETRY, "deadline": RECOVERY_S},
        )

    def _end_session(self) -> None:
        self._zookeeper.stop()
        self._zookeeper.close()

    def _route(self) -> None:
        for id, broker in self.brokers.items():
            routes = {}
            for other_id, other in self.brokers.items():
                if other_id != id:
                    there = Address(other.host, other.port)
                    routes[str(there)] = self.proxies.link(name_of(id), name_of(other_id), there)
            for server in self.ensemble.servers:
                there = Address("127.0.0.1", server.port)
                routes[str(there)] = self.proxies.link(name_of(id), ZOOKEEPER, there)
            broker.program = [ROUTED, json.dumps(routes)]

    # Addresses and topics

    @property
    def bootstrap(self) -> str:
        addresses = [broker.address for broker in self.brokers.values()]
        return ",".join(addresses) if self.security is None else self.security.bootstrap(addresses)

    def create_topic(
        self, topic: str, partitions: int | list[list[int]] = 3, **settings: str
    ) -> None:
        """With three replicas each, all of them in sync when this returns.

        `partitions`: how many, or the replicas of each.
        """
        create_topic(self.bootstrap, topic, partitions, replicas=3, **settings)
        count = partitions if isinstance(partitions, int) else len(partitions)
        self.wait_until_in_sync(topic, count)

    def load(self, topic: str, partitions: int = 3, **options: Any) -> Load:
        return Load(self.bootstrap, topic, partitions, **options)

    # Processes

    def wait_until_ready(self, *ids: int) -> None:
        for id in ids:
            broker = self.brokers[id]
            wait_for(broker.ready_or_ended, RECOVERY_S, f"broker {id} to be ready")
            assert broker.process.poll() is None, f"broker {id} ended:\n{broker.said[-4000:]}"

    def kill(self, id: int) -> None:
        self.brokers[id].kill()

    def stop(self, id: int) -> None:
        """SIGTERM; it must end cleanly, and in time."""
        broker = self.brokers[id]
        try:
            code = broker.terminate()
        except subprocess.TimeoutExpired:
            broker.signal(signal.SIGUSR2)
            time.sleep(1)  # it writes where its tasks wait
            raise AssertionError(f"broker {id} does not stop:\n{broker.said[-8000:]}") from None
        assert code == 0, broker.said[-4000:]

    def start(self, id: int) -> None:
        self.brokers[id].launch()
        self.wait_until_ready(id)

    def pause(self, id: int) -> None:
        self.brokers[id].signal(signal.SIGSTOP)

    def resume(self, id: int) -> None:
        self.brokers[id].signal(signal.SIGCONT)

    def roll(self, between: Callable[[], None] = lambda: None) -> None:
        """A rolling restart, as an operator does it: one broker at a time, in-sync sets whole."""
        for id in IDS:
            self.stop(id)
            self.start(id)
            self.wait_until_all_in_sync()
            between()

    # Links

    def isolate_from_brokers(self, id: int) -> None:
        self.proxies.isolate(name_of(id), *(name_of(other) for other in IDS if other != id))

    def isolate_from_zookeeper(self, id: int) -> None:
        self.proxies.isolate(name_of(id), ZOOKEEPER)

    def cut(self, source: int, target: int) -> None:
        """`target` no longer hears `source`."""
        self.proxies.cut((name_of(source), name_of(target)))

    def heal(self) -> None:
        self.proxies.heal()

    # The state of the cluster, as ZooKeeper has it

    def node(self, path: str) -> dict[str, Any] | None:
        try:
            content, _ = self._zookeeper.retry(self._zookeeper.get, self.path + path)
        except NoNodeError:
            return None
        found: dict[str, Any] = json.loads(content)
        return found

    def children(self, path: str) -> list[str]:
        try:
            return sorted(self._zookeeper.retry(self._zookeeper.get_children, self.path + path))
        except NoNodeError:
            return []

    @property
    def registered(self) -> list[int]:
        return [int(id) for id in self.children("/brokers/ids")]

    @property
    def controller(self) -> int:
        node = self.node("/controller")
        return -1 if node is None else int(node["brokerid"])

    @property
    def controller_epoch(self) -> int:
        content, _ = self._zookeeper.retry(self._zookeeper.get, f"{self.path}/controller_epoch")
        return int(content)

    def broker_epoch(self, id: int) -> int:
        """Of the registration that counts now."""
        stat = self._zookeeper.retry(self._zookeeper.exists, f"{self.path}/brokers/ids/{id}")
        return -1 if stat is None else int(stat.czxid)

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        node = self.node(f"/brokers/topics/{topic}/partitions/{partition}/state")
        if node is None:
            return PartitionState(-1, -1, ())
        return PartitionState(node["leader"], node["leader_epoch"], tuple(node["isr"]))

    def state_version(self, topic: str, partition: int = 0) -> int:
        """How often the state node of a partition was written since it was created."""
        path = f"{self.path}/brokers/topics/{topic}/partitions/{partition}/state"
        return int(self._zookeeper.retry(self._zookeeper.exists, path).version)

    def leader(self, topic: str, partition: int = 0) -> int:
        return self.state(topic, partition).leader

    def partitions(self) -> list[tuple[str, int, list[int]]]:
        """Every partition with its replicas."""
        found = []
        for topic in self.children("/brokers/topics"):
            node = self.node(f"/brokers/topics/{topic}")
            for partition, replicas in sorted((node or {"partitions": {}})["partitions"].items()):
                found.append((topic, int(partition), list(replicas)))
        return found

    def wait_until_in_sync(self, topic: str, partitions: int) -> None:
        def is_whole() -> bool:
            return all(len(self.state(topic, number).isr) == 3 for number in range(partitions))

        wait_for(is_whole, RECOVERY_S, f"every replica of {topic} to be in sync")

    def wait_until_all_in_sync(self) -> None:
        """Until every broker is registered and every replica of every partition is in sync."""

        def is_whole() -> bool:
            return self.registered == list(IDS) and not self.out_of_sync()

        try:
            wait_for(is_whole, RECOVERY_S, "every replica to be in sync")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.registered} {self.out_of_sync()[:5]}") from None

    def out_of_sync(self) -> list[str]:
        left = []
        for topic, partition, replicas in self.partitions():
            state = self.state(topic, partition)
            if set(state.isr) != set(replicas) or state.leader < 0:
                left.append(f"{topic}-{partition}: replicas {replicas}, {state}")
        return left

    def wait_for_leader(
        self, topic: str, partition: int = 0, *, other_than: int = -1, timeout_s: float = 30.0
    ) -> int:
        def has_changed() -> bool:
            return self.leader(topic, partition) not in (-1, other_than)

        wait_for(has_changed, timeout_s, f"a new leader of {topic}-{partition}")
        return self.leader(topic, partition)

    def wait_for_controller(self, *, other_than: int = -1) -> int:
        wait_for(lambda: self.controller not in (-1, other_than), 30, "a controller")
        return self.controller

    # The verdict

    def assert_nothing_lost(self, load: Load) -> list[Event]:
        """After the load's block: heal all, wait until all replicas are in sync, and judge."""
        self.heal()
        self.wait_until_all_in_sync()
        history = load.finish()
        assert check(history) == []
        self.assert_replicas_equal()
        self.assert_no_tracebacks()
        return history

    def assert_replicas_equal(self, compacted: Sequence[str] = ()) -> None:
        """The same batches, byte by byte, on every replica; equal records in compacted topics."""
        cleaned = {"__consumer_offsets", "__transaction_state", *compacted}

        def found() -> list[str]:
            return [
                f"{topic}-{partition}: {difference}"
                for topic, partition, replicas in self.partitions()
                for difference in differences(
                    self._logs(topic, partition, replicas), compacted=topic in cleaned
                )
            ]

        try:
            wait_for(lambda: not found(), 10)
        except AssertionError:
            raise AssertionError(f"replicas differ: {found()[:5]}") from None

    def _logs(self, topic: str, partition: int, replicas: Sequence[int]) -> dict[int, bytes]:
        """The log of each replica: every segment, in the order of offsets; none of a new topic."""
        logs = {}
        for id in replicas:
            folders = [dir / f"{topic}-{partition}" for dir in self.brokers[id].dirs]
            segments = sorted(path for folder in folders for path in folder.glob("*.log"))
            logs[id] = b"".join(segment.read_bytes() for segment in segments)
        return logs

    def assert_no_tracebacks(self) -> None:
        for id, broker in self.brokers.items():
            said = broker.said_ever
            assert "Traceback" not in said, (
                f"broker {id}:\n{said[said.index('Traceback') :][:4000]}"
            )

    def describe_if_possible(self) -> str:
        try:
            return self.describe()
        except Exception as error:  # the first error is the one to see
            return f"cannot describe the cluster: {error}"

    def describe(self) -> str:
        """For a failed test: who lives, who leads, and the last lines of every log."""
        lines = [f"registered {self.registered}, controller {self.controller}"]
        lines += self.out_of_sync()
        for id, broker in self.brokers.items():
            lines.append(f"--- broker {id}, exit code {broker.process.poll()}")
            lines += broker.said.splitlines()[-15:]
        return "\n".join(lines)
